/* The same work on beanstalkd: a producer that pipelines puts, a worker that pipelines reserve and delete.  Prints
 * seconds.
 *
 *         beanstalk PORT TASKS */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define PAYLOAD  100
#define PIPELINE 100u

static uint16_t port;
static unsigned tasks;

static void die(const char *what)
{
        perror(what);
        exit(1);
}

static FILE *connect_server(void)
{
        struct sockaddr_in at = {
                .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
        };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int on = 1;
        if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
                die("beanstalkd");
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        FILE *file = fdopen(fd, "r");
        if (!file)
                die("fdopen");
        return file;
}

static void send_all(const FILE *to, const char *data, size_t size)
{
        for (size_t at = 0; at < size;) {
                ssize_t n = write(fileno((FILE *)to), data + at, size - at);
                if (n <= 0)
                        die("write");
                at += (size_t)n;
        }
}

static void read_line(FILE *from, char *line, int size)
{
        if (!fgets(line, size, from))
                die("read");
}

static void *produce(void *unused)
{
        static char out[PIPELINE * 160];
        char line[256];
        FILE *server = connect_server();
        for (unsigned sent = 0; sent < tasks; sent += PIPELINE) {
                size_t size = 0;
                for (unsigned i = 0; i < PIPELINE; i++)
                        size += (size_t)snprintf(out + size, sizeof(out) - size, "put 0 0 60 %d\r\n%0*u\r\n", PAYLOAD,
                                PAYLOAD, sent + i);
                send_all(server, out, size);
                for (unsigned i = 0; i < PIPELINE; i++)
                        read_line(server, line, sizeof(line));
        }
        (void)fclose(server);
        return unused;
}

static void work(void)
{
        static char out[PIPELINE * 64];
        char line[256];
        unsigned long long ids[PIPELINE];
        FILE *server = connect_server();
        for (unsigned done = 0; done < tasks; done += PIPELINE) {
                size_t size = 0;
                for (unsigned i = 0; i < PIPELINE; i++)
                        size += (size_t)snprintf(out + size, sizeof(out) - size, "reserve\r\n");
                send_all(server, out, size);
                for (unsigned i = 0; i < PIPELINE; i++) {
                        read_line(server, line, sizeof(line));
                        if (sscanf(line, "RESERVED %llu", &ids[i]) != 1)
                                die("reserve");
                        read_line(server, line, sizeof(line)); /* the payload; nothing is done with it */
                }
                size = 0;
                for (unsigned i = 0; i < PIPELINE; i++)
                        size += (size_t)snprintf(out + size, sizeof(out) - size, "delete %llu\r\n", ids[i]);
                send_all(server, out, size);
                for (unsigned i = 0; i < PIPELINE; i++)
                        read_line(server, line, sizeof(line));
        }
        (void)fclose(server);
}

int main(int argc, char **argv)
{
        pthread_t producer;
        if (argc != 3)
                return 2;
        port = (uint16_t)atoi(argv[1]);
        tasks = (unsigned)atoi(argv[2]) / PIPELINE * PIPELINE;
        uint64_t start_ns = clock_boot_ns();
        (void)pthread_create(&producer, NULL, produce, NULL);
        work();
        (void)printf("%.6f\n", (double)(clock_boot_ns() - start_ns) / (double)NS_PER_S);
        (void)pthread_join(producer, NULL);
        return 0;
}
