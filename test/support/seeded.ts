/** The sequence of numbers in [0, 1) of a seed: a failure can be replayed. */
export { seededFraction as randomFrom } from '../../simulation/seeded-random.ts';
