import type { KubeObject } from '../types.ts';

/** A pod that has run to its end. */
export const isTerminated = (pod: KubeObject): boolean =>
  pod.status?.['phase'] === 'Succeeded' || pod.status?.['phase'] === 'Failed';
