/** A seed's own sequence of numbers in [0, 1), so that a failure can be replayed. */
export { seededFraction as randomFrom } from '../../simulation/seeded-random.ts';
