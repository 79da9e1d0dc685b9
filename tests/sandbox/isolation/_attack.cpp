// What the tests of the jails run inside: one small deed each.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static int verdict(const char *what, long result) {
    std::printf("%s %s\n", what, result >= 0 ? "done" : std::strerror(errno));
    return 0;
}

static void *idle(void *) { return nullptr; }

int main(int argc, char **argv) {
    std::string what = argc > 1 ? argv[1] : "";
    if (what == "hog") {
        for (;;) {
            char *block = static_cast<char *>(std::malloc(1 << 20));
            if (!block) return 3;
            std::memset(block, 1, 1 << 20);
        }
    }
    if (what == "spin")
        for (volatile unsigned long i = 0;; i = i + 1) {
        }
    if (what == "bomb")
        for (;;)
            if (fork() < 0) usleep(1000);
    if (what == "flood") {
        static char text[1 << 16];
        std::memset(text, 'x', sizeof text);
        while (write(1, text, sizeof text) > 0) {
        }
        return 1;
    }
    if (what == "daemon") {
        if (fork() == 0) {
            setsid();
            if (fork() == 0) {
                setsid();
                for (;;) pause();
            }
            _exit(0);
        }
        wait(nullptr);
        usleep(200000);
        return 0;
    }
    if (what == "thread") {
        pthread_t thread;
        int error = pthread_create(&thread, nullptr, idle, nullptr);
        if (error == 0) pthread_join(thread, nullptr);
        errno = error;
        return verdict("thread", error == 0 ? 0 : -1);
    }
    if (what == "fork") {
        pid_t child = fork();
        if (child == 0) _exit(0);
        return verdict("fork", child);
    }
    if (what == "vfork") {
        pid_t child = vfork();
        if (child == 0) _exit(0);
        return verdict("vfork", child);
    }
    if (what == "say") return write(std::atoi(argv[2]), "hello", 5) == 5 ? 0 : 1;
    if (what == "cpus") {
        cpu_set_t set;
        if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
            if (CPU_ISSET(cpu, &set)) std::printf("%d ", cpu);
        return 0;
    }
    if (what == "fds") {
        for (int fd = 0; fd < 64; ++fd)
            if (fcntl(fd, F_GETFD) >= 0) std::printf("%d ", fd);
        return 0;
    }
    if (what == "mark") {
        const char *path = argv[2];
        timespec now[2] = {{1, 0}, {1, 0}};
        verdict("chmod", chmod(path, 0));
        verdict("chown", chown(path, getuid(), getgid()));
        verdict("utimensat", utimensat(AT_FDCWD, path, now, 0));
        verdict("truncate", truncate(path, 0));
        verdict("setxattr", setxattr(path, "user.one", "1", 1, 0));
        const int file = open(path, O_RDONLY);
        struct flock all = {};
        all.l_type = F_RDLCK;
        verdict("flock", flock(file, LOCK_SH | LOCK_NB));
        verdict("lock", fcntl(file, F_SETLK, &all));
        return verdict("readable", fcntl(file, F_GETFL));
    }
    if (what == "lease") {
        const int file = open(argv[2], O_RDONLY);
        verdict("lease", fcntl(file, F_SETLEASE, F_RDLCK));
        verdict("notify", fcntl(open("/", O_RDONLY | O_DIRECTORY), F_NOTIFY, DN_ACCESS));
        return 0;
    }
    if (what == "calls") {
        verdict("inet", socket(AF_INET, SOCK_STREAM, 0));
        verdict("inet6", socket(AF_INET6, SOCK_DGRAM, 0));
        verdict("netlink", socket(AF_NETLINK, SOCK_RAW, 0));
        verdict("packet", socket(AF_PACKET, SOCK_RAW, 0));
        verdict("ptrace", ptrace(PTRACE_TRACEME, 0, 0, 0));
        verdict("unshare", unshare(0x10000000));
        verdict("io_uring", syscall(425, 1, nullptr));
        verdict("bpf", syscall(SYS_bpf, 0, nullptr, 0));
        verdict("perf", syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0));
        verdict("userfaultfd", syscall(SYS_userfaultfd, 0));
        verdict("keyctl", syscall(SYS_keyctl, 0, 0, 0, 0, 0));
        verdict("mount", syscall(SYS_mount, "none", "/", "tmpfs", 0, nullptr));
        verdict("shm", syscall(SYS_shmget, 0, 4096, 0600));
        verdict("messages", syscall(SYS_msgget, 0, 0600));
        verdict("semaphores", syscall(SYS_semget, 0, 1, 0600));
        verdict("mq", syscall(SYS_mq_open, "kernelwright", 0102, 0600, nullptr));
        verdict("priority", setpriority(PRIO_USER, 0, 19));
        verdict("policy", syscall(SYS_sched_setscheduler, 1, 0, nullptr));
        verdict("ioprio", syscall(SYS_ioprio_set, 3, 0, 0));
        int pair[2];
        verdict("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
        return 0;
    }
    return 2;
}
