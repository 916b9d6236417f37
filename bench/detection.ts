/** Time from the last beat to Ready=Unknown over 200 phases of beat and tick, on virtual time. */
import type { Benchmark } from './benchmark.ts';

export const detection: Benchmark = {
  name: 'detection',
  about: 'silence to Ready=Unknown over 200 cases on virtual time',
  async run() {
    throw new Error('not written yet');
  },
};
