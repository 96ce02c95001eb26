/* A client that follows a room and every channel that is named there, over one handle, and prints each entry:
 * CHANNEL NUMBER ENTRY.  What it has printed stands in a file; started again, it goes on behind that.
 *
 *         follower CONFIG ROOM FILE CHANNELS ENTRIES        ends when it has so many entries of so many channels */
#include <inttypes.h>
#include <poll.h>
#include <quiver/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHANNELS_MAX 64

struct channel {
        char name[64];
        struct qv_client_follow *follow;
        uint64_t last;
};

static struct channel channels[CHANNELS_MAX];
static unsigned channels_count;

static void die(const char *what)
{
        (void)fprintf(stderr, "%s: %s\n", what, qv_client_error());
        exit(1);
}

static struct channel *channel_of(const char *name)
{
        for (unsigned i = 0; i < channels_count; i++)
                if (!strcmp(channels[i].name, name))
                        return &channels[i];
        if (channels_count == CHANNELS_MAX)
                exit(2);
        struct channel *c = &channels[channels_count++];
        (void)snprintf(c->name, sizeof(c->name), "%s", name);
        return c;
}

static void follow(struct qv_client *client, struct channel *c)
{
        if (!c->follow && qv_client_room_follow(client, c->name, c->last + 1, &c->follow) < 0)
                die(c->name);
}

/* What was printed before this process was killed. */
static void resume(struct qv_client *client, FILE *file)
{
        char name[64];
        uint64_t number;
        rewind(file);
        while (fscanf(file, "%63s %" SCNu64 " %*s", name, &number) == 2)
                channel_of(name)->last = number;
        for (unsigned i = 0; i < channels_count; i++)
                follow(client, &channels[i]);
}

static void take(struct qv_client *client, struct channel *c, const char *room, FILE *file)
{
        struct qv_client_room_page *page;
        while (qv_client_follow_next(c->follow, 0, &page) == 0) {
                if (page->is_gap)
                        (void)printf("gap %s %" PRIu64 "\n", c->name, page->first);
                for (size_t i = 0; i < page->entries_count; i++) {
                        const struct qv_client_room_entry *entry = &page->entries[i];
                        c->last = entry->number;
                        (void)fprintf(file, "%s %" PRIu64 " %s\n", c->name, c->last, (const char *)entry->data);
                        if (!strcmp(c->name, room))
                                follow(client, channel_of(entry->data));
                }
                qv_client_room_page_free(page);
                (void)fflush(file);
        }
}

static bool is_done(unsigned wanted, uint64_t entries)
{
        bool has_all = channels_count == wanted + 1;
        for (unsigned i = 1; i < channels_count; i++)
                has_all &= channels[i].last >= entries;
        return has_all;
}

int main(int argc, char **argv)
{
        struct qv_client_options options = QV_CLIENT_OPTIONS_INIT;
        struct qv_client *client = NULL;
        if (argc != 6)
                return 2;
        FILE *file = fopen(argv[3], "a+");
        options.config = argv[1];
        if (!file || qv_client_open(&options, &client) < 0)
                die(argv[1]);
        (void)channel_of(argv[2]);
        resume(client, file);
        (void)printf("follows\n");
        (void)fflush(stdout);
        while (!is_done((unsigned)atoi(argv[4]), (uint64_t)atoi(argv[5]))) {
                struct pollfd fds[CHANNELS_MAX];
                unsigned count = channels_count;
                for (unsigned i = 0; i < count; i++)
                        fds[i] = (struct pollfd){ .fd = qv_client_follow_fd(channels[i].follow), .events = POLLIN };
                (void)poll(fds, count, -1);
                for (unsigned i = 0; i < count; i++)
                        if (fds[i].revents)
                                take(client, &channels[i], argv[2], file);
        }
        for (unsigned i = 0; i < channels_count; i++)
                qv_client_follow_close(channels[i].follow);
        qv_client_close(client);
        (void)fclose(file);
        return 0;
}
