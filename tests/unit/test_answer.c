/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From logits to answers: softmax, entropy, scores, temperatures, gates. Expected numbers were computed with NumPy 2.2 in the
 * types that upstream uses (float32 softmax and entropy, float64 score).
 */
#include "support.h"

#include "base/json.h"
#include "base/number.h"
#include "model/calibration.h"
#include "predict/answer.h"
#include "predict/gate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_OPTIONS = 300 };

/* exp and sums of float32 differ in their last bits between libraries. */
static const double tolerance = 4e-7;

static void assert_near(double value, double expected)
{
    if (!(fabs(value - expected) <= tolerance * (1 + fabs(expected))))
        fail_msg("%.17g, expected %.17g", value, expected);
}

/* ------------------------------------------------------------------ answers */

static const struct {
    int type;
    size_t count;
    double logits[16];
    double temperature;
    float probabilities[16];
    size_t best;
    double confidence, answer_confidence, score;
} answers[] = {
    {0,
     3,
     {7.727239, -4.555615, -2.060904},
     1.0,
     {0.999939203f, 4.63017977e-06f, 5.61095767e-05f},
     0,
     0.9993929805738091,
     0.9999392032623291,
     0.0},
    {1,
     4,
     {-3.112747, 0.145412, -0.225808, -0.716554},
     1.0,
     {0.0178822987f, 0.464968741f, 0.32077828f, 0.196370691f},
     1,
     0.19757831009493254,
     0.464968740940094,
     1.6956373751163483},
    {2, 2, {3.069569, -0.072532}, 1.0, {0.958596408f, 0.0414036512f}, 0, 0.9585963487625122, 0.958596408367157, 0.0},
    {2, 2, {1.247998, -0.266822}, 1.0, {0.819774389f, 0.180225566f}, 0, 0.8197744488716125, 0.8197743892669678, 0.0},
    {0, 1, {1.5}, 1.6369030475616455, {1.0f}, 0, 1.0, 1.0, 0.0},
    {2, 2, {0.0, 0.0}, 1.983399510383606, {0.5f, 0.5f}, 0, 0.5, 0.5, 0.0},
    {0, 3, {2.0, 2.0, 2.0}, 1.0, {0.333333343f, 0.333333343f, 0.333333343f}, 0, 0.0, 0.3333333432674408, 0.0},
    {0,
     3,
     {1.0, 3.0, 3.0},
     0.5,
     {0.00907471403f, 0.495462596f, 0.495462596f},
     1,
     0.3277316903210151,
     0.4954625964164734,
     0.0},
    {1,
     8,
     {-2.5, 0.25, 1.0, -0.125, 4.0, 2.0, -1.0, 0.5},
     1.2514300346374512,
     {0.00378758344f, 0.0340971537f, 0.0620864853f, 0.025268456f, 0.6825158f, 0.138049737f, 0.0125579834f,
      0.0416368358f},
     4,
     0.45985655351983923,
     0.6825157999992371,
     4.021193126216531},
    {1,
     9,
     {0.0, 0.1, 0.2, 0.30000000000000004, 0.4, 0.5, 0.6000000000000001, 0.7000000000000001, 0.8},
     5.0,
     {0.102431841f, 0.104501113f, 0.106612176f, 0.108765893f, 0.110963106f, 0.11320471f, 0.115491599f, 0.117824674f,
      0.120204888f},
     8,
     0.0006062215701593265,
     0.12020488828420639,
     4.133260533213615},
    {0, 2, {4499.5, -3677.0}, 1.0, {1.0f, 0.0f}, 0, 1.0, 1.0, 0.0},
    {0, 2, {-10000.0, -10000.0}, 1.0, {0.5f, 0.5f}, 0, 0.0, 0.5, 0.0},
    {0, 3, {1e+30, -1e+30, 0.0}, 1.0, {1.0f, 0.0f, 0.0f}, 0, 1.0, 1.0, 0.0},
    {0, 2, {0.0, -120.0}, 1.0, {1.0f, 0.0f}, 0, 1.0, 1.0, 0.0},
    {0,
     5,
     {3.0, 2.9999, 2.9998, -40.0, 12.0},
     0.5,
     {1.52299808e-08f, 1.52269291e-08f, 1.52238808e-08f, 0.0f, 1.0f},
     4,
     0.9999994890990492,
     1.0,
     0.0},
    {2,
     2,
     {-8.0, 9.0},
     2.7197935581207275,
     {0.00192582258f, 0.998074174f},
     1,
     0.9980741739273071,
     0.9980741739273071,
     0.0},
    {1,
     2,
     {5.0, 1.0},
     1.0,
     {0.982013762f, 0.0179862101f},
     0,
     0.8700206934552465,
     0.9820137619972229,
     0.01798621006309986},
    {0,
     6,
     {1.1117, -4.4349, 4.9913, -0.3114, 0.9702, 1.2672},
     4.5897,
     {0.157114416f, 0.0469219536f, 0.365862727f, 0.115227729f, 0.15234448f, 0.162528679f},
     2,
     0.08852390266061605,
     0.36586272716522217,
     0.0},
    {1,
     11,
     {-2.8878, -3.188, 5.9477, -0.3568, 4.0375, -0.2838, 1.6688, -4.1926, 1.6183, 4.4165, 0.2782},
     3.8356,
     {0.0262114331f, 0.0242381711f, 0.262367606f, 0.0507071167f, 0.159449607f, 0.0516814291f, 0.0859848633f,
      0.0186531302f, 0.0848602131f, 0.17600973f, 0.0598367788f},
     2,
     0.12315988274279521,
     0.2623676061630249,
     5.105118457227945},
    {0,
     16,
     {-4.0872, 5.49, -5.4865, 3.3609, 3.8828, -2.7668, 1.137, 5.0419, -1.3487, 3.4573, -0.8768, 2.7375, 0.9229,
      5.5691, -4.3902, -1.6138},
     0.6615,
     {1.82343427e-07f, 0.353677571f, 2.19891394e-08f, 0.0141510954f, 0.0311482102f, 1.34206084e-06f, 0.000490606413f,
      0.179645777f, 1.14497734e-05f, 0.0163711663f, 2.33675601e-05f, 0.00551454024f, 0.000354952586f, 0.39860186f,
      1.15335119e-07f, 7.6692213e-06f},
     13,
     0.5260742023320673,
     0.39860185980796814,
     0.0},
};

static void compute(laya_answer *answer, laya_question_type type, const double *logits, size_t count,
                    double temperature, float *probabilities)
{
    static const double actions[2] = {1.0, -1.0};
    float scratch[MAX_OPTIONS];
    laya_softmax(logits, count, temperature, probabilities);
    *answer = (laya_answer){.type = type,
                            .count = count,
                            .logits = logits,
                            .probabilities = probabilities,
                            .action_count = 2,
                            .action_logits = actions};
    laya_answer_compute(answer, scratch);
}

static void answers_as_numpy_gives_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        float p[16];
        laya_answer answer;
        compute(&answer, (laya_question_type)answers[i].type, answers[i].logits, answers[i].count,
                answers[i].temperature, p);
        for (size_t at = 0; at < answer.count; at++) {
            assert_near((double)p[at], (double)answers[i].probabilities[at]);
            assert_true(laya_round4((double)p[at]) == laya_round4((double)answers[i].probabilities[at]));
        }
        assert_int_equal(answer.best, answers[i].best);
        assert_near(answer.confidence, answers[i].confidence);
        assert_near(answer.answer_confidence, answers[i].answer_confidence);
        assert_near(answer.score, answers[i].score);
        assert_true(answer.confidence >= 0 && answer.confidence <= 1);
    }
}

/* The recorded quickstart of the multilingual checkpoint, rounded as upstream printed it. */
static void recorded_answers(void **state)
{
    (void)state;
    float p[4];
    laya_answer answer;
    compute(&answer, LAYA_CHOICE, answers[0].logits, 3, 1.0, p);
    assert_true(laya_round4((double)p[0]) == 0.9999 && laya_round4((double)p[1]) == 0 &&
                laya_round4((double)p[2]) == 0.0001);
    assert_true(laya_round4(answer.confidence) == 0.9994 && laya_round4(answer.answer_confidence) == 0.9999);
    compute(&answer, LAYA_SCORE, answers[1].logits, 4, 1.0, p);
    assert_true(laya_round4(answer.score) == 1.6956 && laya_round4(answer.confidence) == 0.1976);
    assert_true(laya_round4((double)p[0]) == 0.0179 && laya_round4((double)p[1]) == 0.465);
    assert_true(laya_round4((double)p[2]) == 0.3208 && laya_round4((double)p[3]) == 0.1964);
    compute(&answer, LAYA_NOUL, answers[2].logits, 2, 1.0, p);
    assert_true(laya_round4((double)p[1]) == 0.0414 && laya_round4(answer.confidence) == 0.9586);
    compute(&answer, LAYA_NOUL, answers[3].logits, 2, 1.0, p);
    assert_true(laya_round4((double)p[1]) == 0.1802 && laya_round4(answer.confidence) == 0.8198);
}

/* logit i = (37 i mod 101) / 7 - 5, temperature 1.5: first, middle and last p, then the rest of the answer */
static const struct {
    size_t count;
    float first, middle, last;
    size_t best;
    double confidence, answer_confidence, score;
} large[] = {
    {127, 5.47670834e-06f, 1.17330428e-05f, 2.51363308e-05f, 30, 0.2629321312185958, 0.07493031024932861,
     62.049890074942596},
    {128, 5.4720449e-06f, 0.000397568394f, 0.000851731864f, 30, 0.26333408311896833, 0.07486649602651596,
     62.10521939753926},
    {129, 5.3184217e-06f, 0.000386406988f, 0.0280741751f, 30, 0.2588270260249834, 0.07276468724012375,
     63.95516243723341},
    {255, 2.63229754e-06f, 0.000409720989f, 4.23781421e-06f, 30, 0.22898005787706543, 0.036014124751091,
     127.93854538769574},
    {300, 2.24453424e-06f, 0.0209806468f, 0.000384273735f, 30, 0.22256845481546217, 0.03070889227092266,
     149.76064908016974},
};

static void many_options(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        double logits[MAX_OPTIONS], sum = 0;
        float p[MAX_OPTIONS];
        laya_answer answer;
        for (size_t at = 0; at < large[i].count; at++) logits[at] = (double)(at * 37 % 101) / 7 - 5;
        compute(&answer, LAYA_SCORE, logits, large[i].count, 1.5, p);
        assert_near((double)p[0], (double)large[i].first);
        assert_near((double)p[large[i].count / 2], (double)large[i].middle);
        assert_near((double)p[large[i].count - 1], (double)large[i].last);
        assert_int_equal(answer.best, large[i].best);
        assert_near(answer.confidence, large[i].confidence);
        assert_near(answer.answer_confidence, large[i].answer_confidence);
        assert_near(answer.score, large[i].score);
        for (size_t at = 0; at < large[i].count; at++) sum += (double)p[at];
        assert_near(sum, 1);
    }
}

/* F13: action logits in the thousands; softmax(actions)[0] at temperature 1. */
static void act_probability(void **state)
{
    (void)state;
    static const struct {
        double logits[3];
        size_t count;
        double expected;
    } cases[] = {
        {{4499.5, -3677}, 2, 1.0},
        {{-3677, 4499.5}, 2, 0.0},
        {{0.656901479, -0.849837899}, 2, 0.8185774800317873},
        {{1, 2, 3}, 3, 0.09003057330846786},
        {{7}, 1, 1.0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const float p[1] = {1};
        float scratch[3];
        laya_answer answer = {.type = LAYA_CHOICE,
                              .count = 1,
                              .probabilities = p,
                              .action_count = cases[i].count,
                              .action_logits = cases[i].logits};
        laya_answer_compute(&answer, scratch);
        assert_near(answer.act_probability, cases[i].expected);
    }
}

/* ------------------------------------------------------------------ temperatures */

static void buckets(void **state)
{
    (void)state;
    static const unsigned expected[] = {0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3};
    for (size_t count = 0; count < 13; count++) assert_int_equal(laya_bucket_of(count), expected[count]);
    assert_int_equal(laya_bucket_of(SIZE_MAX), 3);
    assert_string_equal(laya_bucket_name(LAYA_CHOICE, 3), "choice:11+");
    assert_string_equal(laya_bucket_name(LAYA_SCORE, 1), "score:3-5");
    assert_string_equal(laya_bucket_name(LAYA_NOUL, 0), "noul:2");
    assert_string_equal(laya_bucket_name(LAYA_SCORE, 2), "score:6-10");
}

typedef struct calibrated {
    test_memory memory;
    laya_json agent, languages;
    laya_calibration calibration;
    laya_buffer changes;
    laya_error error;
    laya_status status;
} calibrated;

static void calibrate(calibrated *c, const char *agent, const char *languages)
{
    test_memory_init(&c->memory);
    c->languages = (laya_json){0};
    assert_int_equal(laya_json_parse(&c->agent, agent, strlen(agent), NULL, NULL), LAYA_OK);
    if (languages)
        assert_int_equal(laya_json_parse(&c->languages, languages, strlen(languages), NULL, NULL), LAYA_OK);
    laya_buffer_init(&c->changes, &c->memory.hooks);
    c->error = (laya_error){0};
    c->status = laya_calibration_read(&c->calibration, laya_json_root(&c->agent), laya_json_root(&c->languages),
                                      &c->memory.hooks, &c->changes, &c->error);
}

static void end(calibrated *c)
{
    if (c->status == LAYA_OK) laya_calibration_close(&c->calibration);
    laya_buffer_close(&c->changes);
    laya_json_close(&c->agent);
    laya_json_close(&c->languages);
    assert_int_equal(c->memory.live, 0);
}

static double base(const calibrated *c, laya_question_type type, size_t count)
{
    return laya_temperature_of(laya_calibration_for(&c->calibration, NULL), type, count);
}

/* One value after another as temperature[choice]: what is used, and what the warning says (F11). */
static void one_value(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        double used;
        const char *change; /* NULL: none */
    } cases[] = {
        {"1.5", 1.5, NULL},
        {"1", 1, NULL},
        {"0.5", 0.5, NULL},
        {"5.0", 5, NULL},
        {"0.10058280825614929", 0.5, "0.10058280825614929 -> 0.5"},
        {"7", 5, "7 -> 5.0"},
        {"-3", 0.5, "-3 -> 0.5"},
        {"0", 0.5, "0 -> 0.5"},
        {"NaN", 1, "nan -> 1.0"},
        {"Infinity", 1, "inf -> 1.0"},
        {"-Infinity", 1, "-inf -> 1.0"},
        {"1e999", 1, "inf -> 1.0"},
        {"true", 1, "True -> 1.0"},
        {"false", 1, "False -> 1.0"},
        {"null", 1, "None -> 1.0"},
        {"[2]", 1, "[2] -> 1.0"},
        {"{}", 1, "{} -> 1.0"},
        {"\"abc\"", 1, "'abc' -> 1.0"},
        {"\"\"", 1, "'' -> 1.0"},
        {"\"1.5\"", 1.5, NULL},
        {"\" +2.25\\n\"", 2.25, NULL},
        {"\"1_0e-1\"", 1, NULL},
        {"\".75\"", 0.75, NULL},
        {"\"2.\"", 2, NULL},
        {"\"9\"", 5, "'9' -> 5.0"},
        {"\"-1\"", 0.5, "'-1' -> 0.5"},
        {"\"1__0\"", 1, "'1__0' -> 1.0"},
        {"\"_1\"", 1, "'_1' -> 1.0"},
        {"\"nan\"", 1, "'nan' -> 1.0"},
        {"\"inf\"", 1, "'inf' -> 1.0"},
        {"\"0x2\"", 1, "'0x2' -> 1.0"},
        {"\"1 2\"", 1, "'1 2' -> 1.0"},
        {"\"+-2\"", 1, "'+-2' -> 1.0"},
        {"\".\"", 1, "'.' -> 1.0"},
        {"\"1e\"", 1, "'1e' -> 1.0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char agent[160], expected[160];
        calibrated c;
        snprintf(agent, sizeof agent, "{\"temperature\": [%s, 2, 3]}", cases[i].json);
        calibrate(&c, agent, NULL);
        assert_int_equal(c.status, LAYA_OK);
        assert_true(base(&c, LAYA_CHOICE, 4) == cases[i].used);
        assert_true(base(&c, LAYA_SCORE, 4) == 2);
        assert_true(base(&c, LAYA_NOUL, 2) == 3);
        snprintf(expected, sizeof expected, "temperature[choice]=%s", cases[i].change ? cases[i].change : "");
        assert_string_equal(c.changes.data ? c.changes.data : "", cases[i].change ? expected : "");
        end(&c);
    }
}

static void buckets_before_types(void **state)
{
    (void)state;
    calibrated c;
    calibrate(&c,
              "{\"temperature\": [1.25, 1.5, 1.75], \"temperature_by_options\": {\"choice:2\": 1.9, \"choice:11+\": "
              "0.1006, \"score:3-5\": \"2.5\", \"noul:2\": true, \"choice:7\": 99, \"other\": []}}",
              NULL);
    assert_int_equal(c.status, LAYA_OK);
    assert_true(base(&c, LAYA_CHOICE, 1) == 1.9);
    assert_true(base(&c, LAYA_CHOICE, 2) == 1.9);
    assert_true(base(&c, LAYA_CHOICE, 3) == 1.25);
    assert_true(base(&c, LAYA_CHOICE, 11) == 0.5);
    assert_true(base(&c, LAYA_SCORE, 2) == 1.5);
    assert_true(base(&c, LAYA_SCORE, 5) == 2.5);
    assert_true(base(&c, LAYA_SCORE, 6) == 1.5);
    assert_true(base(&c, LAYA_NOUL, 2) == 1.0);
    assert_string_equal(c.changes.data, "choice:11+=0.1006 -> 0.5, noul:2=True -> 1.0");
    end(&c);
    calibrate(&c, "{}", NULL);
    for (int type = 0; type < 3; type++) assert_true(base(&c, (laya_question_type)type, 4) == 1);
    end(&c);
    calibrate(&c, "{\"temperature\": null, \"temperature_by_options\": null}", NULL);
    assert_int_equal(c.status, LAYA_OK);
    assert_true(base(&c, LAYA_NOUL, 2) == 1);
    end(&c);
}

static void languages(void **state)
{
    (void)state;
    calibrated c;
    calibrate(
        &c, "{\"temperature\": [1.25, 1.5, 1.75], \"temperature_by_options\": {\"noul:2\": 2}}",
        "{\"de\": {\"temperature\": [2, 3, 9], \"temperature_by_options\": {\"score:3-5\": 4}}, \"FR-ca\": null, "
        "\"pt\": {\"temperature\": null}, \"es\": {\"temperature_by_options\": {\"noul:2\": 1.1}}}");
    assert_int_equal(c.status, LAYA_OK);
    static const struct {
        const char *lang;
        double choice, score, noul; /* for 3, 3 and 2 options */
    } cases[] = {
        {NULL, 1.25, 1.5, 2},    {"de", 2, 4, 5},        {"DE", 2, 4, 5},         {"de-AT", 2, 4, 5},
        {"d", 1.25, 1.5, 2},     {"deu", 1.25, 1.5, 2},  {"fr", 1.25, 1.5, 1.75}, {"Fr-BE", 1.25, 1.5, 1.75},
        {"pt", 1.25, 1.5, 1.75}, {"es", 1.25, 1.5, 1.1}, {"", 1.25, 1.5, 2},      {"-de", 1.25, 1.5, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const laya_temperatures *t = laya_calibration_for(&c.calibration, cases[i].lang);
        assert_true(laya_temperature_of(t, LAYA_CHOICE, 3) == cases[i].choice);
        assert_true(laya_temperature_of(t, LAYA_SCORE, 3) == cases[i].score);
        assert_true(laya_temperature_of(t, LAYA_NOUL, 2) == cases[i].noul);
    }
    end(&c);
}

static void calibration_errors(void **state)
{
    (void)state;
    static const struct {
        const char *agent, *languages;
        laya_status status;
        const char *message;
    } cases[] = {
        {"{\"temperature\": 1.0}", NULL, LAYA_ERROR_FORMAT, "temperature: expected a list of 3 numbers"},
        {"{\"temperature\": [1, 2]}", NULL, LAYA_ERROR_FORMAT, "temperature: expected a list of 3 numbers"},
        {"{\"temperature_by_options\": [1]}", NULL, LAYA_ERROR_FORMAT,
         "temperature_by_options must be an object of bucket -> float, got list"},
        {"{}", "[]", LAYA_ERROR_INPUT, "lang_temperatures must be a mapping of language -> override, got list"},
        {"{}", "{\"de\": 1}", LAYA_ERROR_INPUT, "Language override 'de' must be a mapping, got int"},
        {"{}", "{\"fr\": {}, \"de\": {\"temperature\": 1}}", LAYA_ERROR_INPUT,
         "Language override 'de' temperature must be a list of 3 floats"},
        {"{}", "{\"de\": {\"temperature_by_options\": 1}}", LAYA_ERROR_INPUT,
         "Language override 'de' temperature_by_options must be a mapping, got int"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        calibrated c;
        calibrate(&c, cases[i].agent, cases[i].languages);
        assert_int_equal(c.status, cases[i].status);
        assert_contains(c.error.message, cases[i].message);
        end(&c);
    }
    calibrated c; /* a long name in UTF-8: the reason behind it is not lost */
    calibrate(&c, "{}",
              "{\"x\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac"
              "\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\": true}");
    assert_int_equal(c.status, LAYA_ERROR_INPUT);
    assert_contains(c.error.message, "must be a mapping, got bool");
    end(&c);
}

/* ------------------------------------------------------------------ gates */

static laya_abstention apply(const laya_gate *gate, laya_question_type type, size_t count, double confidence,
                             double *threshold)
{
    laya_answer answer = {.type = type, .count = count, .answer_confidence = confidence};
    laya_gate_apply(gate, &answer);
    if (threshold) *threshold = answer.abstention_threshold;
    return answer.abstention;
}

static void gates(void **state)
{
    (void)state;
    laya_gate gate;
    laya_error error;
    double threshold;
    assert_int_equal(laya_gate_read(&gate, NULL, NULL, &error), LAYA_OK);
    assert_int_equal(apply(&gate, LAYA_NOUL, 2, 0.1, &threshold), LAYA_GATE_NONE);

    assert_int_equal(laya_gate_read(&gate, " 0.9 ", NULL, &error), LAYA_OK);
    assert_int_equal(apply(&gate, LAYA_NOUL, 2, 0.9, &threshold), LAYA_GATE_PASSED);
    assert_true(threshold == 0.9);
    assert_int_equal(apply(&gate, LAYA_CHOICE, 20, 0.89999, NULL), LAYA_GATE_PASSED); /* rounded to 0.9 before */
    assert_int_equal(apply(&gate, LAYA_CHOICE, 20, 0.89994, NULL), LAYA_GATE_ABSTAINED);

    assert_int_equal(laya_gate_read(&gate, "0", NULL, &error), LAYA_OK);
    assert_int_equal(apply(&gate, LAYA_NOUL, 2, 0.00001, &threshold), LAYA_GATE_PASSED);
    assert_true(threshold == 0);
    assert_int_equal(laya_gate_read(&gate, "1", NULL, &error), LAYA_OK);
    assert_int_equal(apply(&gate, LAYA_NOUL, 2, 1.0, NULL), LAYA_GATE_PASSED);
    assert_int_equal(apply(&gate, LAYA_NOUL, 2, 0.99994, NULL), LAYA_GATE_ABSTAINED);
    assert_int_equal(apply(&gate, LAYA_NOUL, 2, 0.99996, NULL), LAYA_GATE_PASSED);

    /* the bucket, then "default", then 0 */
    assert_int_equal(
        laya_gate_read(&gate, "{\"choice:3-5\": 0.8, \"noul:2\": 1, \"default\": 0.25, \"x\": 0.9}", NULL, &error),
        LAYA_OK);
    apply(&gate, LAYA_CHOICE, 4, 0.5, &threshold);
    assert_true(threshold == 0.8);
    apply(&gate, LAYA_CHOICE, 2, 0.5, &threshold);
    assert_true(threshold == 0.25);
    apply(&gate, LAYA_NOUL, 2, 0.5, &threshold);
    assert_true(threshold == 1);
    assert_int_equal(laya_gate_read(&gate, "{\"score:11+\": 0.7}", NULL, &error), LAYA_OK);
    apply(&gate, LAYA_SCORE, 11, 0.5, &threshold);
    assert_true(threshold == 0.7);
    assert_int_equal(apply(&gate, LAYA_SCORE, 10, 0.0, &threshold), LAYA_GATE_PASSED);
    assert_true(threshold == 0);
}

static void gate_errors(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"1.5", "min_confidence must be a float in [0.0, 1.0], got 1.5"},
        {"-0.1", "min_confidence must be a float in [0.0, 1.0], got -0.1"},
        {"NaN", "min_confidence must be a float in [0.0, 1.0], got nan"},
        {"Infinity", "min_confidence must be a float in [0.0, 1.0], got inf"},
        {"true", "min_confidence must be a float in [0.0, 1.0], got True"},
        {"null", "min_confidence must be a float in [0.0, 1.0], got None"},
        {"\"0.5\"", "min_confidence must be a float in [0.0, 1.0], got '0.5'"},
        {"[0.5]", "min_confidence must be a float in [0.0, 1.0], got [0.5]"},
        {"{}", "a min_confidence map must be a non-empty dict of bucket -> float, got {}"},
        {"{\"default\": 2}", "min_confidence must be a float in [0.0, 1.0], got 2"},
        {"{\"unknown\": \"a\"}", "min_confidence must be a float in [0.0, 1.0], got 'a'"},
        {"{\"noul:2\": 0.5, \"score:2\": NaN}", "min_confidence must be a float in [0.0, 1.0], got nan"},
        {"{\"noul:2\": false}", "min_confidence must be a float in [0.0, 1.0], got False"},
        {"", "min_confidence: line 1, column 1: expected a value, but the text ends"},
        {"0.5.5", "min_confidence: line 1, column 4: expected the end of the text"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_memory memory;
        laya_gate gate;
        laya_error error;
        test_memory_init(&memory);
        assert_int_equal(laya_gate_read(&gate, cases[i][0], &memory.hooks, &error), LAYA_ERROR_INPUT);
        assert_string_equal(error.message, cases[i][1]);
        assert_int_equal(memory.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_as_numpy_gives_them),
        cmocka_unit_test(recorded_answers),
        cmocka_unit_test(many_options),
        cmocka_unit_test(act_probability),
        cmocka_unit_test(buckets),
        cmocka_unit_test(one_value),
        cmocka_unit_test(buckets_before_types),
        cmocka_unit_test(languages),
        cmocka_unit_test(calibration_errors),
        cmocka_unit_test(gates),
        cmocka_unit_test(gate_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
