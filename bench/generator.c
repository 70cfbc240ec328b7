/* A load generator: keep-alive HTTP/1.1 over one epoll, in one thread.
 *
 *     generator HOST PORT CONNECTIONS SECONDS RATE REQUEST-FILE BODY-FILE
 *
 * Sends the bytes of REQUEST-FILE and compares every response with BODY-FILE: status 200 or 201 and each byte of the body. RATE
 * is requests per second over all connections, or 0 for as fast as the service responds. With a rate, a latency runs from the
 * time at which the request was due, not from the time at which it was sent (no coordinated omission). Prints one line of JSON;
 * requests and responses are counted separately, so that a lost request shows.
 *
 * Each `@@@@@@` in the request is replaced by a random key from 100000 to 199999, a new one for each request. The response is
 * then correct if its body contains the first key, and BODY-FILE is ignored.
 *
 * wrk is not used, because generator and service share the machine: checking a body costs a memcmp here, but a Lua call with a
 * table of headers in wrk; and because wrk cannot hold a rate.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { KEY_SIZE = 6, MOST_KEYS = 16, READ_SIZE = 1 << 18, HEAD_SIZE = 16384, EVENTS = 256 };
static const double GRACE = 10.0;

typedef struct { char *data; size_t size; } Bytes;

/* State of the response parser of a connection. */
typedef enum { HEAD, BODY, CHUNK_SIZE, CHUNK_DATA, CHUNK_END, TRAILER } ParserState;

typedef struct {
    int fd;
    double due; /* time at which the request in flight was due; 0: idle */
    ParserState state;
    size_t remaining; /* bytes of the body, or of the chunk */
    size_t compared;  /* bytes of the body that were compared */
    bool wrong;
    bool found; /* the body contains the key */
    char key[KEY_SIZE];
    size_t buffered; /* bytes of an incomplete head or line */
    char buffer[HEAD_SIZE];
} Connection;

static struct sockaddr_in address;
static Bytes request, expected;
static Connection *connections;
static int count, epoll_fd;
static Connection **idle;
static int idle_count;
static size_t keys[MOST_KEYS]; /* their offsets in the request */
static int key_count;
static uint64_t random_state = 88172645463325252ULL;
static uint64_t sent, answered, wrong, lost;
static uint32_t *latencies; /* tenths of microseconds */
static size_t latency_capacity;
static bool closed_loop;
static double deadline;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail(const char *what) {
    perror(what);
    exit(2);
}

static Bytes read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) fail(path);
    Bytes bytes = {NULL, (size_t)ftell(file)};
    rewind(file);
    bytes.data = malloc(bytes.size + 1);
    if (!bytes.data || fread(bytes.data, 1, bytes.size, file) != bytes.size) fail(path);
    fclose(file);
    return bytes;
}

/* --- sending ------------------------------------------------------------------------------------------------------ */

static void open_connection(Connection *c) {
    int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof address)) fail("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &event)) fail("epoll_ctl");
    c->due = 0;
    c->buffered = 0;
    c->state = HEAD;
    idle[idle_count++] = c;
}

static void find_keys(void) {
    char *place = request.data;
    while (key_count < MOST_KEYS && (place = memmem(place, request.size - (size_t)(place - request.data), "@@@@@@", KEY_SIZE))) {
        keys[key_count++] = (size_t)(place - request.data);
        place += KEY_SIZE;
    }
}

static void choose_keys(Connection *c) {
    for (int i = 0; i < key_count; i++) {
        random_state ^= random_state << 13;
        random_state ^= random_state >> 7;
        random_state ^= random_state << 17;
        unsigned number = 100000 + (unsigned)(random_state % 100000);
        for (int digit = KEY_SIZE - 1; digit >= 0; digit--, number /= 10)
            request.data[keys[i] + (size_t)digit] = (char)('0' + number % 10);
    }
    if (key_count) memcpy(c->key, request.data + keys[0], KEY_SIZE);
    c->found = false;
}

/* If the connection breaks while sending, the next read reports it. */
static void send_request(Connection *c, double due) {
    size_t done = 0;
    c->due = due;
    c->state = HEAD;
    c->buffered = c->compared = 0;
    c->wrong = false;
    choose_keys(c);
    sent++;
    while (done < request.size) {
        ssize_t n = send(c->fd, request.data + done, request.size - done, MSG_NOSIGNAL);
        if (n > 0) {
            done += (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            struct pollfd wait = {c->fd, POLLOUT, 0};
            poll(&wait, 1, 1000);
        } else {
            return;
        }
    }
}

/* --- receiving ---------------------------------------------------------------------------------------------------- */

static void record(double seconds) {
    if (answered == latency_capacity) {
        latency_capacity = latency_capacity ? latency_capacity * 2 : 1 << 16;
        latencies = realloc(latencies, latency_capacity * sizeof *latencies);
        if (!latencies) fail("realloc");
    }
    latencies[answered] = (uint32_t)(seconds * 1e7);
}

static void finish(Connection *c) {
    double end = now();
    record(end - c->due);
    answered++;
    if (c->wrong || (key_count ? !c->found : c->compared != expected.size)) wrong++;
    c->due = 0;
    c->state = HEAD;
    if (closed_loop && end < deadline) {
        send_request(c, end);
    } else {
        idle[idle_count++] = c;
    }
}

static void read_head(Connection *c, const char *head, const char *end) {
    bool chunked = false;
    c->remaining = 0;
    c->wrong = strncmp(head, "HTTP/1.1 200", 12) && strncmp(head, "HTTP/1.1 201", 12);
    for (const char *line = head; line < end; line++) {
        if (!strncasecmp(line, "content-length:", 15)) c->remaining = strtoull(line + 15, NULL, 10);
        if (!strncasecmp(line, "transfer-encoding: chunked", 26)) chunked = true;
        line = memchr(line, '\n', (size_t)(end - line));
        if (!line) break;
    }
    c->state = chunked ? CHUNK_SIZE : BODY;
}

/* Copies bytes to the buffer until it ends with `mark`. Returns the rest of `data`, or NULL if more bytes are needed. */
static const char *gather(Connection *c, const char *data, const char *end, const char *mark) {
    size_t size = strlen(mark);
    while (data < end && c->buffered < HEAD_SIZE - 1) {
        c->buffer[c->buffered++] = *data++;
        if (c->buffered >= size && !memcmp(c->buffer + c->buffered - size, mark, size)) {
            c->buffer[c->buffered] = 0;
            return data;
        }
    }
    if (data < end) {
        fprintf(stderr, "response head of more than %d bytes\n", HEAD_SIZE);
        exit(2);
    }
    return NULL;
}

/* Heads mostly arrive complete, in the first packet. */
static const char *parse_head(Connection *c, const char *data, const char *end) {
    const char *blank = c->buffered ? NULL : memmem(data, (size_t)(end - data), "\r\n\r\n", 4);
    if (blank) {
        read_head(c, data, blank + 2);
        return blank + 4;
    }
    data = gather(c, data, end, "\r\n\r\n");
    if (data) {
        read_head(c, c->buffer, c->buffer + c->buffered);
        c->buffered = 0;
    }
    return data;
}

static const char *compare(Connection *c, const char *data, const char *end) {
    size_t size = (size_t)(end - data) < c->remaining ? (size_t)(end - data) : c->remaining;
    if (key_count) {
        /* A small response arrives in one piece; in a large one the key may be in any piece. */
        if (memmem(data, size, c->key, KEY_SIZE)) c->found = true;
    } else if (c->compared + size > expected.size || memcmp(data, expected.data + c->compared, size)) c->wrong = true;
    c->compared += size;
    c->remaining -= size;
    return data + size;
}

static const char *parse_line(Connection *c, const char *data, const char *end) {
    data = gather(c, data, end, "\r\n");
    if (!data) return NULL;
    size_t length = c->buffered - 2;
    c->buffered = 0;
    if (c->state == CHUNK_SIZE) {
        c->remaining = strtoull(c->buffer, NULL, 16);
        c->state = c->remaining ? CHUNK_DATA : TRAILER;
    } else if (c->state == CHUNK_END) {
        c->state = CHUNK_SIZE;
    } else if (length == 0) {
        finish(c);
    }
    return data;
}

static void parse(Connection *c, const char *data, const char *end) {
    while (data && data < end) {
        if (!c->due) {
            wrong++; /* bytes without a request, such as a duplicated response, are wrong */
            return;
        }
        switch (c->state) {
        case HEAD:
            data = parse_head(c, data, end);
            break;
        case BODY:
            data = compare(c, data, end);
            break;
        case CHUNK_DATA:
            data = compare(c, data, end);
            if (!c->remaining) c->state = CHUNK_END;
            break;
        default:
            data = parse_line(c, data, end);
        }
        if (data && c->state == BODY && !c->remaining) {
            bool more = data < end;
            finish(c);
            if (more) {
                wrong++;
                return;
            }
        }
    }
}

static void remove_idle(const Connection *c) {
    for (int i = 0; i < idle_count; i++) {
        if (idle[i] == c) idle[i--] = idle[--idle_count];
    }
}

static void receive(Connection *c, char *scratch) {
    ssize_t n = recv(c->fd, scratch, READ_SIZE, 0);
    if (n > 0) {
        parse(c, scratch, scratch + n);
        return;
    }
    if (n < 0 && errno == EAGAIN) return;
    if (c->due) {
        lost++;
    } else {
        remove_idle(c);
    }
    close(c->fd);
    open_connection(c);
}

/* --- the loop ----------------------------------------------------------------------------------------------------- */

static void set_timer(int timer, double moment) {
    struct itimerspec at = {.it_value = {(time_t)moment, (long)((moment - (double)(time_t)moment) * 1e9)}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
}

static double send_due_requests(double due, double interval) {
    double moment = now();
    while (idle_count && (closed_loop || due <= moment)) {
        send_request(idle[--idle_count], closed_loop ? moment : due);
        due += interval;
    }
    return due;
}

static void poll_once(char *scratch, int milliseconds, int timer) {
    static struct epoll_event events[EVENTS];
    int ready = epoll_wait(epoll_fd, events, EVENTS, milliseconds);
    for (int i = 0; i < ready; i++) {
        if (events[i].data.ptr) {
            receive(events[i].data.ptr, scratch);
        } else {
            uint64_t ticks;
            if (read(timer, &ticks, sizeof ticks) < 0 && errno != EAGAIN) fail("timer");
        }
    }
}

static int ascending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double percentile(double share) {
    if (!answered) return 0;
    size_t index = (size_t)((double)answered * share);
    return latencies[index < answered ? index : answered - 1] / 10.0;
}

int main(int argc, char **argv) {
    if (argc != 8) {
        fprintf(stderr, "usage: %s HOST PORT CONNECTIONS SECONDS RATE REQUEST-FILE BODY-FILE\n", argv[0]);
        return 2;
    }
    double seconds = atof(argv[4]), rate = atof(argv[5]);
    count = atoi(argv[3]);
    request = read_file(argv[6]);
    expected = read_file(argv[7]);
    find_keys();
    closed_loop = rate <= 0;
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)atoi(argv[2]));
    inet_pton(AF_INET, argv[1], &address.sin_addr);
    connections = calloc((size_t)count, sizeof *connections);
    idle = calloc((size_t)count, sizeof *idle);
    char *scratch = malloc(READ_SIZE);
    epoll_fd = epoll_create1(0);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (!connections || !idle || !scratch || epoll_fd < 0 || timer < 0) fail("set-up");
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timer, &event);
    prctl(PR_SET_TIMERSLACK, 1);
    for (int i = 0; i < count; i++) open_connection(&connections[i]);

    double start = now(), due = start, interval = closed_loop ? 0 : 1 / rate;
    deadline = start + seconds;
    while (now() < deadline) {
        due = send_due_requests(due, interval);
        if (!closed_loop && idle_count) set_timer(timer, due < deadline ? due : deadline);
        poll_once(scratch, 100, timer);
    }
    double end = now();
    /* Requests without a response within the grace period are lost. */
    while (idle_count < count && now() < end + GRACE) poll_once(scratch, 100, timer);
    lost += (uint64_t)(count - idle_count);

    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    qsort(latencies, answered, sizeof *latencies, ascending);
    printf("{\"sent\": %llu, \"answered\": %llu, \"wrong\": %llu, \"lost\": %llu, \"seconds\": %.6f, \"p50\": %.1f, "
           "\"p99\": %.1f, \"cpu\": %.6f}\n",
           (unsigned long long)sent, (unsigned long long)answered, (unsigned long long)wrong, (unsigned long long)lost,
           end - start, percentile(0.5), percentile(0.99),
           (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
               + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6);
    return 0;
}
