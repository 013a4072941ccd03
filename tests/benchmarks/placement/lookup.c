/*
 * One name looked up in the placement map and in databases, in turn; the tables are made here and
 * hold the names of the map. Prints a line for each way: name, then nanoseconds per lookup of every round.
 *
 *   lookup MAP ROWS ROUNDS LOOKUPS SQLITE-FILE [MARIADB-SOCKET]
 */
#include "core/map_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <sqlite3.h>
#ifdef HAVE_MARIADB
#include <mysql.h>
#endif

enum { NAMES = 1000, ROUNDS_MAX = 200 };

static char names[NAMES][32];
static long rows;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "lookup: %s\n", what);
    exit(1);
}

static struct tz_map map;

/* As the library does it: the name's templates first, which it needs for its record. */
static void in_map(const char *name)
{
    static struct tz_names templates;
    static const struct tz_ident ident = {.job_id = "4711", .host = "node17", .rank = 3, .pid = 12345, .array_index = -1};
    struct tz_query query = {.fs = "lustre", .fs_length = 6, .key = name, .names = &templates, .rank = 3};
    struct tz_layout layout;
    struct tz_row row;

    query.key_length = strlen(name);
    tz_template(name, query.key_length, &ident, &templates);
    if (tz_map_lookup(&map, &query, &row) == TZ_FOUND_NOT)
        die("a name is not in the map");
    tz_map_layout(&map, row.layout, &layout);
    if (row.ost_count != 28 || layout.count != 4)
        die("the map has another row");
}

/* What a database does with `name = ?`: the row of a name as it is. */
static void in_map_exactly(const char *name)
{
    struct tz_layout layout;
    struct tz_row row;

    if (!tz_map_find(&map, tz_hash_exact(map.key, "lustre", 6, name, strlen(name)), &row))
        die("a name is not in the map");
    tz_map_layout(&map, row.layout, &layout);
    if (row.ost_count != 28 || layout.count != 4)
        die("the map has another row");
}

static sqlite3_stmt *lite;

static void open_sqlite(const char *path)
{
    sqlite3_stmt *insert;
    sqlite3 *db;
    char osts[56] = {0}, name[32];

    if (sqlite3_open(path, &db) ||
        sqlite3_exec(db,
                     "PRAGMA journal_mode=WAL; BEGIN;"
                     "CREATE TABLE placement(name TEXT PRIMARY KEY, layout INT, osts BLOB) WITHOUT ROWID",
                     NULL, NULL, NULL) ||
        sqlite3_prepare_v2(db, "INSERT INTO placement VALUES(?, 1, ?)", -1, &insert, NULL))
        die(sqlite3_errmsg(db));
    for (long i = 0; i < rows; i++) {
        snprintf(name, sizeof name, "/run/out.%08ld", i);
        sqlite3_bind_text(insert, 1, name, -1, SQLITE_TRANSIENT);
        sqlite3_bind_blob(insert, 2, osts, sizeof osts, SQLITE_STATIC);
        if (sqlite3_step(insert) != SQLITE_DONE)
            die(sqlite3_errmsg(db));
        sqlite3_reset(insert);
    }
    if (sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) ||
        sqlite3_prepare_v2(db, "SELECT layout, osts FROM placement WHERE name = ?", -1, &lite, NULL))
        die(sqlite3_errmsg(db));
}

static void in_sqlite(const char *name)
{
    sqlite3_bind_text(lite, 1, name, -1, SQLITE_STATIC);
    if (sqlite3_step(lite) != SQLITE_ROW || sqlite3_column_int(lite, 0) != 1 || sqlite3_column_bytes(lite, 1) != 56 ||
        !sqlite3_column_blob(lite, 1))
        die("a name is not in SQLite's table");
    sqlite3_reset(lite);
}

#ifdef HAVE_MARIADB
static MYSQL_STMT *maria;
static MYSQL_BIND asked[1], given[2];
static char sought[32], osts[64];
static unsigned long sought_length, osts_length;
static int number;

static void open_mariadb(const char *socket)
{
    static char text[200000];
    MYSQL *db = mysql_init(NULL);
    size_t length = 0;

    if (!mysql_real_connect(db, NULL, "root", NULL, NULL, 0, socket, 0))
        die(mysql_error(db));
    if (mysql_query(db, "CREATE OR REPLACE DATABASE tarazu") || mysql_select_db(db, "tarazu") ||
        mysql_query(db, "CREATE TABLE placement(name VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,"
                        " layout INT, osts VARBINARY(64))"))
        die(mysql_error(db));
    for (long i = 0; i < rows; i++) {
        length += (size_t)sprintf(text + length, "%s('/run/out.%08ld', 1, REPEAT('x', 56))",
                                  length ? "," : "INSERT INTO placement VALUES", i);
        if (length > sizeof text - 100 || i == rows - 1) {
            if (mysql_real_query(db, text, length))
                die(mysql_error(db));
            length = 0;
        }
    }
    maria = mysql_stmt_init(db);
    asked[0] = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_STRING, .buffer = sought, .length = &sought_length};
    given[0] = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_LONG, .buffer = &number};
    given[1] = (MYSQL_BIND){
        .buffer_type = MYSQL_TYPE_BLOB, .buffer = osts, .buffer_length = sizeof osts, .length = &osts_length};
    if (mysql_stmt_prepare(maria, "SELECT layout, osts FROM placement WHERE name = ?", -1) ||
        mysql_stmt_bind_param(maria, asked) || mysql_stmt_bind_result(maria, given))
        die(mysql_stmt_error(maria));
}

static void in_mariadb(const char *name)
{
    sought_length = strlen(name);
    memcpy(sought, name, sought_length);
    if (mysql_stmt_execute(maria) || mysql_stmt_fetch(maria) || number != 1 || osts_length != 56)
        die("a name is not in MariaDB's table");
    mysql_stmt_free_result(maria);
}
#endif

struct way {
    const char *name;
    void (*find)(const char *name);
    long share; /* of the lookups: slower ways do fewer */
    double ns[ROUNDS_MAX];
};

static void measure(struct way *ways, int count, int rounds, long lookups)
{
    for (int round = 0; round < rounds; round++)
        for (int w = 0; w < count; w++) {
            long n = lookups / ways[w].share;
            double start = now();

            for (long i = 0; i < n; i++)
                ways[w].find(names[(i * 7) % NAMES]);
            ways[w].ns[round] = (now() - start) / (double)n;
        }
    for (int w = 0; w < count; w++) {
        printf("%s", ways[w].name);
        for (int round = 0; round < rounds; round++)
            printf(" %.1f", ways[w].ns[round]);
        printf("\n");
    }
}

int main(int count, char **arguments)
{
    static struct way ways[4] = {{.name = "map", .find = in_map_exactly, .share = 1},
                                 {.name = "templates", .find = in_map, .share = 1},
                                 {.name = "sqlite", .find = in_sqlite, .share = 10}};
    const char *wrong;
    int n = 3;

    if (count < 6 || atoi(arguments[3]) > ROUNDS_MAX)
        return 2;
    rows = atol(arguments[2]);
    for (long i = 0; i < NAMES; i++)
        snprintf(names[i], sizeof names[i], "/run/out.%08ld", i * (rows / NAMES));
    wrong = tz_map_open(arguments[1], -1, false, &map);
    if (wrong)
        die(wrong);
    open_sqlite(arguments[5]);
#ifdef HAVE_MARIADB
    if (count > 6) {
        open_mariadb(arguments[6]);
        ways[n++] = (struct way){.name = "mariadb", .find = in_mariadb, .share = 100};
    }
#endif
    measure(ways, n, atoi(arguments[3]), atol(arguments[4]));
    return 0;
}
