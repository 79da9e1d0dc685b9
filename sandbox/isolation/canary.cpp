// SPDX-License-Identifier: Apache-2.0
// The built-in hostile program: it tries what a jail must refuse and says what it managed.
// Its claims are `name=value` lines; canary.py holds them against what it sees from outside.
#include <arpa/inet.h>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <sched.h>
#include <string>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <signal.h>

extern char **environ;

static void say(const char *name, const std::string &value) {
    std::printf("%s=%s\n", name, value.c_str());
    std::fflush(stdout);
}

static std::string refused() { return std::string("refused:") + std::strerror(errno); }

static std::string read_file(const std::string &path) {
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return refused();
    std::string text(4096, '\0');
    ssize_t got = read(fd, &text[0], text.size());
    std::string result = got < 0 ? refused() : "";
    close(fd);
    if (got < 0) return result;
    text.resize(static_cast<size_t>(got));
    for (char &c : text)
        if (c == '\0' || c == '\n') c = ' ';
    return "read:" + text;
}

static void try_write(const std::string &folder, const std::string &token) {
    int fd = open((folder + "/written").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) return say("write", refused());
    bool whole = write(fd, token.data(), token.size()) == static_cast<ssize_t>(token.size());
    close(fd);
    say("write", whole ? "done" : refused());
}

static void try_overwrite(const std::string &path) {
    // Whether these changed anything is seen from outside.
    int refusals = chmod(path.c_str(), 0640) + utimes(path.c_str(), nullptr);
    refusals += truncate(path.c_str(), 0) + setxattr(path.c_str(), "user.kw", "1", 1, 0);
    say("marks", refusals == -4 ? refused() : "done");
    int fd = open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd < 0) return say("overwrite", refused());
    close(fd);
    say("overwrite", "done");
}

static void try_connect(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        say("net_socket", refused());
        say("net_connect", refused());
        return;
    }
    say("net_socket", "done");
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bool connected = connect(fd, reinterpret_cast<sockaddr *>(&to), sizeof to) == 0;
    say("net_connect", connected ? "done" : refused());
    close(fd);
}

static void try_abstract(const std::string &name) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return say("net_abstract", refused());
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    std::memcpy(to.sun_path + 1, name.data(), name.size());
    socklen_t size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    bool connected = connect(fd, reinterpret_cast<sockaddr *>(&to), size) == 0;
    say("net_abstract", connected ? "done" : refused());
    close(fd);
}

// Whether it is slower afterwards is seen from outside; a filter may only say that it was done.
static void try_to_hinder(int pid) {
    say("priority", setpriority(PRIO_PROCESS, static_cast<id_t>(pid), 5) == 0 ? "done" : refused());
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0) return;
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
        if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
    sched_setaffinity(pid, sizeof one, &one);
}

static void try_process(int pid) {
    long traced = ptrace(PTRACE_SEIZE, pid, 0, 0);
    say("ptrace", traced == 0 ? "done" : refused());
    say("environ", read_file("/proc/" + std::to_string(pid) + "/environ"));
    char byte = 0;
    iovec here{&byte, 1}, there{reinterpret_cast<void *>(environ), 1};
    bool copied = process_vm_readv(pid, &here, 1, &there, 1, 0) == 1;
    say("vm_read", copied ? "done" : refused());
    int init = open("/proc/1/mem", O_RDWR | O_CLOEXEC);
    say("init", init >= 0 ? "done" : refused());
    say("signal", kill(pid, 0) == 0 ? "done" : refused());
    try_to_hinder(pid);
}

// Double fork and setsid; the daemon keeps this program's command line, by which it is found.
static void try_daemon() {
    int gate[2];
    if (pipe(gate) != 0) return say("daemon", refused());
    pid_t child = fork();
    if (child < 0) return say("daemon", refused());
    if (child == 0) {
        setsid();
        pid_t again = fork();
        if (again == 0) {
            close(gate[0]);
            setsid();
            char byte = 'd';
            if (write(gate[1], &byte, 1) != 1) _exit(1);
            for (;;) pause();
        }
        _exit(again < 0 ? 1 : 0);
    }
    close(gate[1]);
    char byte = 0;
    bool started = read(gate[0], &byte, 1) == 1;
    int status = 0;
    waitpid(child, &status, 0);
    say("daemon", started ? "done" : refused());
}

static void show_self() {
    for (char **one = environ; *one; ++one) say("env", std::string(*one).substr(0, 200));
    say("uid", std::to_string(getuid()));
    say("euid", std::to_string(geteuid()));
    gid_t groups[64];
    say("groups", std::to_string(getgroups(64, groups)));
    say("no_new_privs", std::to_string(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)));
}

static int look(char **a) {
    say("secret", read_file(a[0]));
    try_write(a[1], a[7]);
    try_overwrite(a[2]);
    try_connect(std::atoi(a[3]));
    try_abstract(a[4]);
    try_process(std::atoi(a[5]));
    try_daemon();
    show_self();
    // Until the other end closes we stay, so that we can be looked at from outside.
    int gate = std::atoi(a[6]);
    char byte = 'r';
    if (write(gate, &byte, 1) != 1) return 1;
    return read(gate, &byte, 1) == 0 ? 0 : 1;
}

static int fork_many(int most) {
    int made = 0;
    for (; made < most; ++made) {
        pid_t child = fork();
        if (child < 0) break;
        if (child == 0)
            for (;;) pause();
    }
    say("forked", std::to_string(made));
    usleep(300000);
    return 0;
}

static int hog(long mebibytes) {
    for (long done = 0; done < mebibytes; ++done) {
        char *block = static_cast<char *>(std::malloc(1 << 20));
        if (!block) return 3;
        std::memset(block, 1, 1 << 20);
        if (done % 32 == 0) usleep(5000);
    }
    say("allocated", std::to_string(mebibytes));
    usleep(300000);
    return 0;
}

int main(int argc, char **argv) {
    std::string mode = argc > 1 ? argv[1] : "";
    if (mode == "look" && argc == 10) return look(argv + 2);
    if (mode == "fork" && argc == 3) return fork_many(std::atoi(argv[2]));
    if (mode == "hog" && argc == 3) return hog(std::atol(argv[2]));
    if (mode == "stand" && argc == 3) {
        // The bystander: it may be traced by anybody whom the machine lets, and ends with its input.
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        char byte;
        return read(0, &byte, 1) < 0;
    }
    std::fprintf(stderr, "usage: canary look|fork|hog|stand ...\n");
    return 2;
}
