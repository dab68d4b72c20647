/* Two threads add to one number: a race where RACE is defined, none where each has a cell of its own. */
int total[2];
void add(int n) {
    int i;
#ifdef RACE
    #pragma omp parallel for num_threads(2)
    for (i = 0; i < n; i++) total[0] += i;
#else
    #pragma omp parallel for num_threads(2) schedule(static, 1)
    for (i = 0; i < 2; i++) for (int j = 0; j < n; j++) total[i] += j;
    total[0] += total[1];
#endif
}
