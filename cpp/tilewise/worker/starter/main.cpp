// tilewise-start PARENT COMMAND …: becomes COMMAND, in a process group of its own, which is asked to end when PARENT
// dies.
//
// What a child has to do between fork and exec, done after exec instead: so that a parent with threads, whose locks a
// forked child would inherit in any state, can start it by vfork.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/prctl.h>
#include <unistd.h>

namespace {

/// `text` as it stands between the quotation marks of JSON.
void print_escaped(const char* text) {
    for (; *text != '\0'; ++text) {
        const auto byte = static_cast<unsigned char>(*text);
        if (byte < ' ' || byte == '"' || byte == '\\') {
            std::printf("\\u%04x", byte);
        } else {
            std::putchar(byte);
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fputs("usage: tilewise-start PARENT COMMAND …; this program is started by tilewise\n", stderr);
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != std::atoi(argv[1])) {
        return 1;  // the parent died before the kernel was told
    }
    setpgid(0, 0);  // the terminal's Ctrl-C is the parent's to pass on; in vain where we lead a session already
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);  // a thread of the parent's may have blocked some
    execvp(argv[2], argv + 2);
    std::fputs("\x1e{\"event\": \"error\", \"kind\": \"usage\", \"rank\": -1, \"message\": \"", stdout);
    print_escaped(argv[2]);
    std::printf(" cannot be started: %s\"}\n", std::strerror(errno));
    return 127;
}
