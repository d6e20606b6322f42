/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Optimal k-means on a line by a search for the price of a cluster.
 *
 * The optimum of k clusters is a path of k edges from 0 to n, where edge (a, b) is the cluster of the points a … b - 1
 * and gains S(a, b)^2 / W(a, b), with the sums S of weight * value and W of weight: the squared error is the constant
 * sum of weight * value^2 less the gain of the path. Gains obey the inverse quadrangle inequality, so the best total
 * gain of m edges is concave in m: with a price on each edge, the best path of any length has about as many edges as the
 * price allows, and it is the best path of that length. One such path takes O(n log n), for any k. Where no price leads
 * to exactly k edges, the paths of two neighbouring prices confine every border of the wanted path to a window, and
 * dynamic programming over the windows ends the search. docs/PALETTES.md proves each step.
 */
#include "palette/kmeans.h"

#include "base/error.h"

#include <math.h>

#define MAX_SEARCH 64u      /* prices that are tried */
#define INTERPOLATIONS 8u   /* of them by the law price ~ clusters^-3, the others by the chord */
#define ESTIMATE_PARTS 512u /* pieces in which the density of the points is measured */
#define NOISE 0x1p-50       /* gains that differ by less, as a part of all energy, are equal */

/* The best path for a price. */
typedef struct priced_path {
    uint32_t *starts; /* [edges] first points, from the last edge to the first */
    uint32_t edges;   /* 0: none was found yet */
    double price;
    double gain; /* without prices */
} priced_path;

struct laya_kmeans {
    laya_allocator allocator;
    uint32_t capacity;
    double *weight;      /* [n + 1] sums of the weights of the points before */
    double *sum;         /* [n + 1] the same of weight * (value - centre) */
    double *best, *next; /* [n + 1] of the best paths to each point */
    uint32_t *from;      /* [n + 1] where their last edges begin */
    uint32_t *queue;     /* [n + 1] beginnings that are the best ones for later points, in the order of these */
    uint32_t *since;     /* [n + 1] the first point for which each of them is */
    priced_path few, many, last; /* of fewer and of more edges than are wanted, and the one that was tried last */
    double noise;
    uint32_t count;
};

/* ------------------------------------------------------------------ memory */

static bool allocate(laya_kmeans *solver)
{
    const laya_allocator *allocator = &solver->allocator;
    size_t size = (size_t)solver->capacity + 1;
    double **const doubles[] = {&solver->weight, &solver->sum, &solver->best, &solver->next};
    uint32_t **const indices[] = {&solver->from,       &solver->queue,       &solver->since,
                                  &solver->few.starts, &solver->many.starts, &solver->last.starts};
    bool made = true;
    for (size_t at = 0; at < sizeof doubles / sizeof *doubles; at++)
        made &= (*doubles[at] = laya_alloc(allocator, size, sizeof **doubles[at])) != NULL;
    for (size_t at = 0; at < sizeof indices / sizeof *indices; at++)
        made &= (*indices[at] = laya_alloc(allocator, size, sizeof **indices[at])) != NULL;
    return made;
}

laya_status laya_kmeans_open(uint32_t capacity, const laya_allocator *allocator, laya_kmeans **out, laya_error *error)
{
    *out = laya_alloc_zero(allocator, 1, sizeof **out);
    if (!*out) return laya_fail_memory(error, sizeof **out);
    (*out)->allocator = *allocator;
    (*out)->capacity = capacity;
    if (allocate(*out)) return LAYA_OK;
    laya_kmeans_close(*out);
    *out = NULL;
    return laya_fail_memory(error, ((size_t)capacity + 1) * (4 * sizeof(double) + 6 * sizeof(uint32_t)));
}

void laya_kmeans_close(laya_kmeans *solver)
{
    if (!solver) return;
    const laya_allocator allocator = solver->allocator;
    void *const blocks[] = {solver->weight,      solver->sum,        solver->best,  solver->next,
                            solver->from,        solver->queue,      solver->since, solver->few.starts,
                            solver->many.starts, solver->last.starts};
    for (size_t at = 0; at < sizeof blocks / sizeof *blocks; at++) laya_release(&allocator, blocks[at]);
    laya_release(&allocator, solver);
}

/* ------------------------------------------------------------------ gains */

/* Of the cluster of the points from … to - 1. */
static inline double gain(const laya_kmeans *solver, uint32_t from, uint32_t to)
{
    double sum = solver->sum[to] - solver->sum[from];
    return sum * sum / (solver->weight[to] - solver->weight[from]);
}

/* The value nearest to the mean. */
static double central_value(const double *values, const double *weights, uint32_t count)
{
    double weight = 0, sum = 0;
    uint32_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        weight += weights[i];
        sum += weights[i] * values[i];
    }
    while (at + 1 < count && fabs(values[at + 1] - sum / weight) <= fabs(values[at] - sum / weight)) at++;
    return values[at];
}

/*
 * Values are taken from a centre, an exact subtraction of halves, so that little is lost where all have one sign or one
 * has most of the weight.
 */
static void add_up(laya_kmeans *solver, const double *values, const double *weights, uint32_t count)
{
    double weight = 0, sum = 0, energy = 0, centre = central_value(values, weights, count);
    solver->count = count;
    solver->weight[0] = solver->sum[0] = 0;
    for (uint32_t at = 0; at < count; at++) {
        double value = values[at] - centre;
        weight += weights[at];
        sum += weights[at] * value;
        energy += weights[at] * value * value;
        solver->weight[at + 1] = weight;
        solver->sum[at + 1] = sum;
    }
    solver->noise = energy * NOISE;
}

/* ------------------------------------------------------------------ best last edges */

/*
 * For each point i of first_end … last_end the beginning j < i, first_start <= j <= last_start, with the largest
 * base[j] + gain(j, i); of equal ones the first. base[j] may be a result: result[j] is made before j is a beginning.
 *
 * A later beginning that is better for one i is better for all that follow (the inverse quadrangle inequality), so the
 * beginnings to be used later form a queue in which each has the point since when it is the best one.
 */
typedef struct sweep {
    const double *base;
    double *result;
    double price;
    uint32_t first_start, last_start;
    uint32_t first_end, last_end;
} sweep;

static inline bool later_is_better(const laya_kmeans *solver, const double *base, uint32_t later, uint32_t earlier,
                                   uint32_t to)
{
    return base[later] + gain(solver, later, to) > base[earlier] + gain(solver, earlier, to) + solver->noise;
}

/* The first point beyond `low`, for which `later` is not better, where it is; last + 1: none. */
static uint32_t find_since(const laya_kmeans *solver, const double *base, uint32_t later, uint32_t earlier,
                           uint32_t low, uint32_t last)
{
    uint32_t high = low, step = 1;
    for (;; step *= 2) {
        if (high == last) return last + 1;
        high = last - low > step ? low + step : last;
        if (later_is_better(solver, base, later, earlier, high)) break;
        low = high;
    }
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (later_is_better(solver, base, later, earlier, middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

static void run_sweep(const laya_kmeans *solver, const sweep *s)
{
    uint32_t *queue = solver->queue, *since = solver->since, *from = solver->from;
    uint32_t head = 0, tail = 0; /* of the queue */
    const double *base = s->base;
    for (uint32_t at = s->first_start; at <= s->last_end; at++) {
        if (at >= s->first_end) {
            while (head + 1 < tail && since[head + 1] <= at) head++;
            from[at] = queue[head];
            s->result[at] = base[queue[head]] + gain(solver, queue[head], at) - s->price;
        }
        if (at > s->last_start || at == s->last_end) continue;
        uint32_t first = at + 1 > s->first_end ? at + 1 : s->first_end; /* point that it can reach */
        while (tail > head) {
            uint32_t from_then = since[tail - 1] > first ? since[tail - 1] : first;
            if (later_is_better(solver, base, at, queue[tail - 1], from_then)) {
                tail--;
                continue;
            }
            first = find_since(solver, base, at, queue[tail - 1], from_then, s->last_end);
            break;
        }
        if (first > s->last_end) continue;
        queue[tail] = at;
        since[tail++] = first;
    }
}

/* The best path for a price. */
static void run_price(laya_kmeans *solver, double price, priced_path *path)
{
    const sweep all = {.base = solver->best,
                       .result = solver->best,
                       .price = price,
                       .first_start = 0,
                       .last_start = solver->count - 1,
                       .first_end = 1,
                       .last_end = solver->count};
    solver->best[0] = 0;
    run_sweep(solver, &all);
    path->price = price;
    path->edges = 0;
    path->gain = 0;
    for (uint32_t to = solver->count; to > 0; to = solver->from[to]) {
        path->starts[path->edges++] = solver->from[to];
        path->gain += gain(solver, solver->from[to], to);
    }
}

/* ------------------------------------------------------------------ the search for a price */

/*
 * The price at which about `clusters` clusters are the best, from Panter and Dite's formula for the error of a fine
 * quantizer: (integral of density^(1/3))^3 / (12 clusters^2), of which the price is the negative derivative.
 */
static double estimate_price(const laya_kmeans *solver, const double *values, uint32_t clusters)
{
    uint32_t count = solver->count, part = count / ESTIMATE_PARTS + 1;
    double integral = 0, k = clusters;
    for (uint32_t at = 0; at < count; at += part) {
        uint32_t end = count - at > part ? at + part : count - 1;
        double width = values[end] - values[at], weight = solver->weight[end] - solver->weight[at];
        integral += cbrt(weight * width * width);
    }
    return integral * integral * integral / (6 * k * k * k);
}

/* By the law price ~ clusters^-p between the two paths, p = 3 where there is only one. */
static double interpolate(const laya_kmeans *solver, double clusters)
{
    const priced_path *few = &solver->few, *many = &solver->many;
    const priced_path *one = few->edges ? few : many;
    double power = -3;
    if (few->edges && many->edges) power = log(many->price / few->price) / log((double)many->edges / few->edges);
    return one->price * pow(clusters / one->edges, power);
}

/* The price for which both paths are equally good: a path between them, where there is a better one, is better. */
static double chord(const laya_kmeans *solver)
{
    const priced_path *few = &solver->few, *many = &solver->many;
    return (many->gain - few->gain) / (many->edges - few->edges);
}

/* Swap two paths. */
static void exchange(priced_path *a, priced_path *b)
{
    priced_path old = *a;
    *a = *b;
    *b = old;
}

/* What is known without a search: one cluster, and a cluster for each point. */
static void complete_bracket(laya_kmeans *solver)
{
    priced_path *few = &solver->few, *many = &solver->many;
    uint32_t count = solver->count;
    if (!few->edges) {
        few->starts[0] = 0;
        few->edges = 1;
        few->gain = gain(solver, 0, count);
    }
    if (many->edges) return;
    many->edges = count;
    many->gain = 0;
    for (uint32_t at = 0; at < count; at++) {
        many->starts[count - 1 - at] = at;
        many->gain += gain(solver, at, at + 1);
    }
}

/* The next price to try. Always the chord's is one that ends the search or brings it on. */
static double next_price(laya_kmeans *solver, uint32_t clusters, unsigned tried, bool *is_chord)
{
    const priced_path *few = &solver->few, *many = &solver->many;
    bool both = few->edges && many->edges;
    *is_chord = tried >= INTERPOLATIONS || (both && many->edges - few->edges == 2);
    if (!*is_chord) {
        double price = interpolate(solver, clusters);
        if (both ? price > many->price && price < few->price : price > 0 && isfinite(price)) return price;
        *is_chord = true;
    }
    complete_bracket(solver);
    return chord(solver);
}

/*
 * Look for a price whose best path has as many edges as are wanted. True: it is in `last`. False: there is none, and the
 * paths in `few` and `many` are neighbours on the hull of the best gains, or close to it.
 */
static bool find_price(laya_kmeans *solver, const double *values, uint32_t clusters)
{
    priced_path *few = &solver->few, *many = &solver->many, *last = &solver->last;
    double price = estimate_price(solver, values, clusters);
    bool is_chord = false;
    few->edges = many->edges = 0;
    for (unsigned tried = 1; tried <= MAX_SEARCH; tried++) {
        run_price(solver, price, last);
        if (last->edges == clusters) return true;
        if (is_chord && (last->edges <= few->edges || last->edges >= many->edges)) return false;
        exchange(last, last->edges < clusters ? few : many);
        price = next_price(solver, clusters, tried, &is_chord);
    }
    complete_bracket(solver);
    return false;
}

/* ------------------------------------------------------------------ paths of exactly so many edges */

/* For each border between two clusters where it may lie, and the best border before it. */
typedef struct windows {
    uint32_t clusters;
    uint32_t *low, *high; /* [clusters + 1], border c is the end of cluster c; border 0 is 0, the last one the end */
    size_t *place;        /* [clusters + 1] of the window's first point in `from` */
    uint32_t *from;
} windows;

/*
 * Borders counted from the end: those of a path of fewer edges lie at or before, those of one of more edges at or after
 * the wanted path's. One point more on each side makes up for rounding. False: the two contradict each other.
 */
static bool confine(const laya_kmeans *solver, const windows *w)
{
    uint32_t clusters = w->clusters, count = solver->count;
    w->low[0] = w->high[0] = 0;
    w->low[clusters] = w->high[clusters] = count;
    for (uint32_t c = 1; c < clusters; c++) {
        uint32_t behind = clusters - c; /* clusters after the border */
        uint32_t low = behind <= solver->few.edges ? solver->few.starts[behind - 1] : 0;
        uint32_t high = solver->many.starts[behind - 1] + 1;
        low = low > 0 ? low - 1 : 0;
        w->low[c] = low > w->low[c - 1] ? low : w->low[c - 1] + 1;
        w->high[c] = high < count - behind ? high : count - behind;
    }
    for (uint32_t c = clusters; c-- > 1;) {
        if (w->high[c] >= w->high[c + 1]) w->high[c] = w->high[c + 1] - 1;
        if (w->low[c] > w->high[c]) return false;
    }
    return true;
}

/* All that is possible. */
static void open_wide(const laya_kmeans *solver, const windows *w)
{
    for (uint32_t c = 1; c < w->clusters; c++) {
        w->low[c] = c;
        w->high[c] = solver->count - (w->clusters - c);
    }
}

static laya_status open_windows(laya_kmeans *solver, windows *w, uint32_t clusters, laya_error *error)
{
    size_t borders = (size_t)clusters + 1, total = 0;
    *w = (windows){.clusters = clusters};
    w->place = laya_alloc(&solver->allocator, borders, sizeof *w->place + 2 * sizeof *w->low);
    if (!w->place) return laya_fail_memory(error, borders * (sizeof *w->place + 2 * sizeof *w->low));
    w->low = (uint32_t *)(w->place + borders);
    w->high = w->low + borders;
    if (!confine(solver, w)) open_wide(solver, w);
    for (uint32_t c = 0; c <= clusters; c++) {
        w->place[c] = total;
        total += w->high[c] - w->low[c] + 1;
    }
    w->from = laya_alloc(&solver->allocator, total, sizeof *w->from);
    if (w->from) return LAYA_OK;
    laya_release(&solver->allocator, w->place);
    return laya_fail_memory(error, total * sizeof *w->from);
}

/* Dynamic programming, cluster by cluster. */
static laya_status solve_windows(laya_kmeans *solver, uint32_t clusters, uint32_t *starts, laya_error *error)
{
    windows w;
    LAYA_TRY(open_windows(solver, &w, clusters, error));
    double *base = solver->best, *result = solver->next;
    base[0] = 0;
    for (uint32_t c = 1; c <= clusters; c++) {
        const sweep one = {.base = base,
                           .result = result,
                           .first_start = w.low[c - 1],
                           .last_start = w.high[c - 1],
                           .first_end = w.low[c],
                           .last_end = w.high[c]};
        run_sweep(solver, &one);
        for (uint32_t at = w.low[c]; at <= w.high[c]; at++) w.from[w.place[c] + at - w.low[c]] = solver->from[at];
        base = result;
        result = base == solver->best ? solver->next : solver->best;
    }
    uint32_t border = solver->count;
    for (uint32_t c = clusters; c > 0; c--) {
        border = w.from[w.place[c] + border - w.low[c]];
        starts[c - 1] = border;
    }
    laya_release(&solver->allocator, w.from);
    laya_release(&solver->allocator, w.place);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ calls */

laya_status laya_kmeans_solve(laya_kmeans *solver, const double *values, const double *weights, uint32_t count,
                              uint32_t clusters, uint32_t *starts, laya_error *error)
{
    if (count <= clusters) {
        for (uint32_t at = 0; at < count; at++) starts[at] = at;
        return LAYA_OK;
    }
    starts[0] = 0;
    if (clusters <= 1) return LAYA_OK;
    add_up(solver, values, weights, count);
    if (!find_price(solver, values, clusters)) return solve_windows(solver, clusters, starts, error);
    for (uint32_t c = 0; c < clusters; c++) starts[c] = solver->last.starts[clusters - 1 - c];
    return LAYA_OK;
}

double laya_kmeans_mean(const double *values, const double *weights, uint32_t count)
{
    double mean = 0, weight = 0;
    for (uint32_t at = 0; at < count; at++) {
        weight += weights[at];
        mean += (values[at] - mean) * weights[at] / weight;
    }
    return mean;
}
