// Files: blocking, split, non-blocking and with shared pointers.
#include "expected.hpp"

namespace {

MPI_Status* const kNoStatus = MPI_STATUS_IGNORE;

void wait(MPI_Request request) {
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_CALLED(MPI_Wait);
}

// Two integers each time, at `at` where a place can be said.
void write(MPI_File file, MPI_Offset at, int* data) {
  MPI_Request request;
  MPI_File_write(file, data, 2, MPI_INT, kNoStatus);
  EXPECT_MOVED(MPI_File_write, 8, 0);
  MPI_File_write_all(file, data, 2, MPI_INT, kNoStatus);
  EXPECT_MOVED(MPI_File_write_all, 8, 0);
  MPI_File_write_at(file, at, data, 2, MPI_INT, kNoStatus);
  EXPECT_MOVED(MPI_File_write_at, 8, 0);
  MPI_File_write_at_all(file, at, data, 2, MPI_INT, kNoStatus);
  EXPECT_MOVED(MPI_File_write_at_all, 8, 0);
  MPI_File_write_shared(file, data, 2, MPI_INT, kNoStatus);
  EXPECT_MOVED(MPI_File_write_shared, 8, 0);
  MPI_File_write_ordered(file, data, 2, MPI_INT, kNoStatus);
  EXPECT_MOVED(MPI_File_write_ordered, 8, 0);
  MPI_File_write_all_begin(file, data, 2, MPI_INT);
  MPI_File_write_all_end(file, data, kNoStatus);
  EXPECT_MOVED(MPI_File_write_all_begin, 8, 0);
  EXPECT_CALLED(MPI_File_write_all_end);
  MPI_File_write_at_all_begin(file, at, data, 2, MPI_INT);
  MPI_File_write_at_all_end(file, data, kNoStatus);
  EXPECT_MOVED(MPI_File_write_at_all_begin, 8, 0);
  EXPECT_CALLED(MPI_File_write_at_all_end);
  MPI_File_write_ordered_begin(file, data, 2, MPI_INT);
  MPI_File_write_ordered_end(file, data, kNoStatus);
  EXPECT_MOVED(MPI_File_write_ordered_begin, 8, 0);
  EXPECT_CALLED(MPI_File_write_ordered_end);
  MPI_File_iwrite(file, data, 2, MPI_INT, &request);
  EXPECT_MOVED(MPI_File_iwrite, 8, 0);
  wait(request);
  MPI_File_iwrite_all(file, data, 2, MPI_INT, &request);
  EXPECT_MOVED(MPI_File_iwrite_all, 8, 0);
  wait(request);
  MPI_File_iwrite_at(file, at, data, 2, MPI_INT, &request);
  EXPECT_MOVED(MPI_File_iwrite_at, 8, 0);
  wait(request);
  MPI_File_iwrite_at_all(file, at, data, 2, MPI_INT, &request);
  EXPECT_MOVED(MPI_File_iwrite_at_all, 8, 0);
  wait(request);
  MPI_File_iwrite_shared(file, data, 2, MPI_INT, &request);
  EXPECT_MOVED(MPI_File_iwrite_shared, 8, 0);
  wait(request);
}

void read(MPI_File file, MPI_Offset at, int* data) {
  MPI_Request request;
  MPI_File_read(file, data, 2, MPI_INT, kNoStatus);
  EXPECT_MOVED(MPI_File_read, 0, 8);
  MPI_File_read_all(file, data, 2, MPI_INT, kNoStatus);
  EXPECT_MOVED(MPI_File_read_all, 0, 8);
  MPI_File_read_at(file, at, data, 2, MPI_INT, kNoStatus);
  EXPECT_MOVED(MPI_File_read_at, 0, 8);
  MPI_File_read_at_all(file, at, data, 2, MPI_INT, kNoStatus);
  EXPECT_MOVED(MPI_File_read_at_all, 0, 8);
  MPI_File_read_shared(file, data, 2, MPI_INT, kNoStatus);
  EXPECT_MOVED(MPI_File_read_shared, 0, 8);
  MPI_File_read_ordered(file, data, 2, MPI_INT, kNoStatus);
  EXPECT_MOVED(MPI_File_read_ordered, 0, 8);
  MPI_File_read_all_begin(file, data, 2, MPI_INT);
  MPI_File_read_all_end(file, data, kNoStatus);
  EXPECT_MOVED(MPI_File_read_all_begin, 0, 8);
  EXPECT_CALLED(MPI_File_read_all_end);
  MPI_File_read_at_all_begin(file, at, data, 2, MPI_INT);
  MPI_File_read_at_all_end(file, data, kNoStatus);
  EXPECT_MOVED(MPI_File_read_at_all_begin, 0, 8);
  EXPECT_CALLED(MPI_File_read_at_all_end);
  MPI_File_read_ordered_begin(file, data, 2, MPI_INT);
  MPI_File_read_ordered_end(file, data, kNoStatus);
  EXPECT_MOVED(MPI_File_read_ordered_begin, 0, 8);
  EXPECT_CALLED(MPI_File_read_ordered_end);
  MPI_File_iread(file, data, 2, MPI_INT, &request);
  EXPECT_MOVED(MPI_File_iread, 0, 8);
  wait(request);
  MPI_File_iread_all(file, data, 2, MPI_INT, &request);
  EXPECT_MOVED(MPI_File_iread_all, 0, 8);
  wait(request);
  MPI_File_iread_at(file, at, data, 2, MPI_INT, &request);
  EXPECT_MOVED(MPI_File_iread_at, 0, 8);
  wait(request);
  MPI_File_iread_at_all(file, at, data, 2, MPI_INT, &request);
  EXPECT_MOVED(MPI_File_iread_at_all, 0, 8);
  wait(request);
  MPI_File_iread_shared(file, data, 2, MPI_INT, &request);
  EXPECT_MOVED(MPI_File_iread_shared, 0, 8);
  wait(request);
}

}  // namespace

void files(const char* folder) {
  const auto path = std::string(folder) + "/mpi_classes.data";
  auto data = buffer(10);
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, path.c_str(),
                MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
  MPI_File_preallocate(file, 4096);
  MPI_File_set_size(file, 4096);
  MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
  write(file, 100 + 2 * rank, data.data());
  MPI_File_sync(file);
  MPI_Offset at = 0, bytes = 0;
  MPI_Aint extent = 0;
  MPI_File_get_position_shared(file, &at);
  MPI_File_get_byte_offset(file, at, &bytes);
  MPI_File_get_size(file, &bytes);
  MPI_File_get_type_extent(file, MPI_INT, &extent);
  MPI_File_set_atomicity(file, 0);
  MPI_File_set_info(file, MPI_INFO_NULL);
  MPI_File_seek(file, 0, MPI_SEEK_SET);
  MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
  read(file, 100 + 2 * rank, data.data());
  MPI_File_close(&file);
  EXPECT_CALLED(MPI_File_open);
  EXPECT_CALLED(MPI_File_preallocate);
  EXPECT_CALLED(MPI_File_set_size);
  EXPECT_CALLED(MPI_File_set_view);
  EXPECT_CALLED(MPI_File_sync);
  EXPECT_CALLED(MPI_File_seek);
  EXPECT_CALLED(MPI_File_seek_shared);
  EXPECT_CALLED(MPI_File_close);
  EXPECT_CALLED(MPI_File_get_position_shared);
  EXPECT_CALLED(MPI_File_get_byte_offset);
  EXPECT_CALLED(MPI_File_get_size);
  EXPECT_CALLED(MPI_File_get_type_extent);
  EXPECT_CALLED(MPI_File_set_atomicity);
  EXPECT_CALLED(MPI_File_set_info);
  // To nowhere: an error, and a call.
  MPI_File_delete("/nowhere/at/all", MPI_INFO_NULL);
  EXPECT_CALLED(MPI_File_delete);
}
