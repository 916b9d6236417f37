import type { KubePod } from '../types.ts';

/** A pod that has succeeded or failed. */
export const isTerminated = (pod: KubePod): boolean =>
  pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
