# A first call lands here with the number of the routine on the stack: keeps the arguments, asks
# where the routine is, and goes there as if nothing had been in between.
.text
.globl sinew_first_call
.hidden sinew_first_call
.type sinew_first_call, @function
sinew_first_call:
  push %rdi
  push %rsi
  push %rdx
  push %rcx
  push %r8
  push %r9
  push %rax
  sub $136, %rsp
  movups %xmm0, 0(%rsp)
  movups %xmm1, 16(%rsp)
  movups %xmm2, 32(%rsp)
  movups %xmm3, 48(%rsp)
  movups %xmm4, 64(%rsp)
  movups %xmm5, 80(%rsp)
  movups %xmm6, 96(%rsp)
  movups %xmm7, 112(%rsp)
  mov 192(%rsp), %rdi
  call sinew_resolve
  mov %rax, %r11
  movups 0(%rsp), %xmm0
  movups 16(%rsp), %xmm1
  movups 32(%rsp), %xmm2
  movups 48(%rsp), %xmm3
  movups 64(%rsp), %xmm4
  movups 80(%rsp), %xmm5
  movups 96(%rsp), %xmm6
  movups 112(%rsp), %xmm7
  add $136, %rsp
  pop %rax
  pop %r9
  pop %r8
  pop %rcx
  pop %rdx
  pop %rsi
  pop %rdi
  add $8, %rsp
  jmp *%r11
.size sinew_first_call, .-sinew_first_call
.section .note.GNU-stack,"",@progbits
