/* Runs a battery of TestU01 (L'Ecuyer and Simard, 2007) on the 32-bit words of standard input:
   `testu01 SmallCrush`, `testu01 Crush` or `testu01 BigCrush`. See docs/randomness.md. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <testu01/bbattery.h>
#include <testu01/swrite.h>
#include <testu01/unif01.h>

static unsigned int words[1 << 16];
static size_t used = 0, there = 0;

static unsigned int next_word(void)
{
    if (used == there) {
        there = fread(words, sizeof *words, sizeof words / sizeof *words, stdin);
        used = 0;
        if (there == 0) {
            fprintf(stderr, "standard input ended before the battery did\n");
            exit(1);
        }
    }
    return words[used++];
}

int main(int argc, char **argv)
{
    unif01_Gen *gen = unif01_CreateExternGenBits("standard input", next_word);
    const char *battery = argc == 2 ? argv[1] : "";

    swrite_Basic = FALSE; /* only the summary */
    if (strcmp(battery, "SmallCrush") == 0)
        bbattery_SmallCrush(gen);
    else if (strcmp(battery, "Crush") == 0)
        bbattery_Crush(gen);
    else if (strcmp(battery, "BigCrush") == 0)
        bbattery_BigCrush(gen);
    else {
        fprintf(stderr, "which battery? SmallCrush, Crush or BigCrush\n");
        return 2;
    }
    unif01_DeleteExternGenBits(gen);
    return 0;
}
