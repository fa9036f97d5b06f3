// A fiber: a function with its own stack, switched to and from by hand.
//
// Saves what the C calling convention says a function may rely on, and nothing else (no signal
// mask, which makes ucontext's switch a system call). On processors without a switch written here,
// and under AddressSanitizer, which must be told about stacks, ucontext does it.
#ifndef NS_EMULATION_FIBER_H
#define NS_EMULATION_FIBER_H
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define NS_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NS_FIBER_ASAN 1
#endif
#endif
#if !defined(NS_FIBER_ASAN) && (defined(__x86_64__) || defined(__aarch64__))
#define NS_FIBER_OWN_SWITCH 1
#else
#include <ucontext.h>
#endif
#ifdef NS_FIBER_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulation {

// Memory of one stack, with a page below it that nothing may touch.
class Stack {
  public:
    // `offset` bytes stay free at the top: stacks that all begin at the same place of a page fight
    // for one set of the cache.
    Stack(size_t bytes, size_t offset) : page_(size_t(sysconf(_SC_PAGESIZE))), size_(bytes + page_), offset_(offset) {
        void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) abort();
        memory_ = static_cast<char*>(memory);
        mprotect(memory_, page_, PROT_NONE);
    }
    Stack(const Stack&) = delete;
    Stack(Stack&& other) noexcept
        : page_(other.page_), size_(other.size_), offset_(other.offset_), memory_(other.memory_) {
        other.memory_ = nullptr;
    }
    ~Stack() {
        if (memory_) munmap(memory_, size_);
    }
    char* bottom() const { return memory_ + page_; }
    char* top() const { return memory_ + size_ - offset_; }
    size_t size() const { return size_ - page_ - offset_; }

  private:
    size_t page_, size_, offset_;
    char* memory_;
};

#ifdef NS_FIBER_OWN_SWITCH
// Where a new fiber starts: takes its function and argument from its stack. Never returns.
extern "C" void ns_emulation_start();
#if defined(__APPLE__)
#define NS_ASM_NAME(name) "_" #name
#else
#define NS_ASM_NAME(name) #name
#endif
#if defined(__x86_64__)
// Inline, and left by a jump: a call here, or a return, would put the processor's guesses of return
// addresses out of step at every switch. Lanes are at the same places of the same code, so their
// returns are predicted correctly.
inline __attribute__((always_inline)) void switch_stack(void** from, void* to) {
    asm volatile("leaq -128(%%rsp), %%rsp\n" // the red zone stays
                 "pushq %%rbp\n leaq 1f(%%rip), %%rax\n pushq %%rax\n"
                 "movq %%rsp, (%0)\n movq %1, %%rsp\n"
                 "popq %%rax\n jmpq *%%rax\n"
                 "1: popq %%rbp\n leaq 128(%%rsp), %%rsp\n"
                 : "+D"(from), "+S"(to)
                 :
                 : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "cc", "memory",
                   "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
                   "xmm12", "xmm13", "xmm14", "xmm15");
}
asm(".text\n.globl " NS_ASM_NAME(ns_emulation_start) "\n" NS_ASM_NAME(ns_emulation_start) ":\n"
    "popq %rax\n popq %rdi\n xorl %ebp, %ebp\n callq *%rax\n ud2\n");
static const size_t START_WORD = 0, FUNCTION_WORD = 1, ARGUMENT_WORD = 2, SAVED_WORDS = 3;
#else
// Saves the registers that survive a call on the old stack and takes them from the new one.
extern "C" void ns_emulation_switch(void** from, void* to);
inline void switch_stack(void** from, void* to) { ns_emulation_switch(from, to); }
asm(".text\n.globl " NS_ASM_NAME(ns_emulation_switch) "\n.p2align 2\n" NS_ASM_NAME(ns_emulation_switch) ":\n"
    "sub sp, sp, #160\n"
    "stp x19, x20, [sp, #0]\n stp x21, x22, [sp, #16]\n stp x23, x24, [sp, #32]\n stp x25, x26, [sp, #48]\n"
    "stp x27, x28, [sp, #64]\n stp x29, x30, [sp, #80]\n"
    "stp d8, d9, [sp, #96]\n stp d10, d11, [sp, #112]\n stp d12, d13, [sp, #128]\n stp d14, d15, [sp, #144]\n"
    "mov x9, sp\n str x9, [x0]\n mov sp, x1\n"
    "ldp x19, x20, [sp, #0]\n ldp x21, x22, [sp, #16]\n ldp x23, x24, [sp, #32]\n ldp x25, x26, [sp, #48]\n"
    "ldp x27, x28, [sp, #64]\n ldp x29, x30, [sp, #80]\n"
    "ldp d8, d9, [sp, #96]\n ldp d10, d11, [sp, #112]\n ldp d12, d13, [sp, #128]\n ldp d14, d15, [sp, #144]\n"
    "add sp, sp, #160\n ret\n"
    ".globl " NS_ASM_NAME(ns_emulation_start) "\n.p2align 2\n" NS_ASM_NAME(ns_emulation_start) ":\n"
    "mov x0, x20\n blr x19\n brk #1\n");
static const size_t FUNCTION_WORD = 0, ARGUMENT_WORD = 1, START_WORD = 11, SAVED_WORDS = 20;
#endif
#endif

// A point of execution to come back to: a fiber's, or the scheduler's that runs them.
class Fiber {
  public:
    // Makes the next switch to this fiber call `function(argument)` on `stack`; the function must
    // never return.
    void prepare(const Stack& stack, Fiber& scheduler, void (*function)(void*), void* argument) {
#ifdef NS_FIBER_OWN_SWITCH
        (void)scheduler;
        // 16-aligned when all of it has been taken, as a call wants it.
        void** words = reinterpret_cast<void**>(stack.top()) - 16 - SAVED_WORDS;
        if (reinterpret_cast<uintptr_t>(words + SAVED_WORDS) % 16 != 0) --words;
        for (size_t word = 0; word < SAVED_WORDS; ++word) words[word] = nullptr;
        words[FUNCTION_WORD] = reinterpret_cast<void*>(function);
        words[ARGUMENT_WORD] = argument;
        words[START_WORD] = reinterpret_cast<void*>(&ns_emulation_start);
        at_ = words;
#else
        scheduler_ = &scheduler;
        function_ = function;
        argument_ = argument;
        bottom_ = stack.bottom();
        size_ = stack.size();
        getcontext(&context_);
        context_.uc_stack.ss_sp = stack.bottom();
        context_.uc_stack.ss_size = stack.size();
        context_.uc_link = nullptr;
        const uint64_t self = reinterpret_cast<uintptr_t>(this);
        makecontext(&context_, reinterpret_cast<void (*)()>(&enter), 2, unsigned(self >> 32), unsigned(self));
#endif
    }

    // Leaves `from`, to which a later switch comes back, and goes on where this one left off.
    void switch_from(Fiber& from) {
#ifdef NS_FIBER_OWN_SWITCH
        switch_stack(&from.at_, at_);
#else
        start_switch(from);
        swapcontext(&from.context_, &context_);
        finish_switch(from.fake_, nullptr, nullptr);
#endif
    }

  private:
#ifdef NS_FIBER_OWN_SWITCH
    void* at_ = nullptr;
#else
    static void enter(unsigned high, unsigned low) {
        Fiber* self = reinterpret_cast<Fiber*>(uintptr_t(uint64_t(high) << 32 | low));
        // What was left to come here is the scheduler's stack.
        finish_switch(nullptr, &self->scheduler_->bottom_, &self->scheduler_->size_);
        self->function_(self->argument_);
    }
#ifdef NS_FIBER_ASAN
    void start_switch(Fiber& from) const { __sanitizer_start_switch_fiber(&from.fake_, bottom_, size_); }
    static void finish_switch(void* fake, const void** bottom, size_t* size) {
        __sanitizer_finish_switch_fiber(fake, bottom, size);
    }
#else
    void start_switch(Fiber&) const {}
    static void finish_switch(void*, const void**, size_t*) {}
#endif
    ucontext_t context_;
    Fiber* scheduler_ = nullptr;
    void (*function_)(void*) = nullptr;
    void* argument_ = nullptr;
    const void* bottom_ = nullptr;
    size_t size_ = 0;
    void* fake_ = nullptr;
#endif
};

} // namespace emulation
#endif
