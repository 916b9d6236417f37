/** The promise of a machine that it will be silent until a time (shared/fleet/nodes/planned-silence.ts). */
import { PLANNED_REASON_ANNOTATION, PLANNED_UNTIL_ANNOTATION } from '../../shared/fleet/nodes/planned-silence.ts';
import { rfc3339 } from '../../shared/kubernetes/rfc3339.ts';
import type { KubeRequest } from '../ports/kube-api.ts';
import { nodePath } from './lease.ts';

const UNITS_SECONDS: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3_600, d: 86_400 };

/** Seconds of a text such as `90`, `90s`, `30m`, `2h` or `1d`; undefined for another one, and for 0. */
export function durationSeconds(text: string): number | undefined {
  const match = /^(\d{1,9})([smhd]?)$/.exec(text);
  if (match === null) return undefined;
  const seconds = Number(match[1]) * UNITS_SECONDS[match[2]!]!;
  return seconds > 0 ? seconds : undefined;
}

/** The request that makes the promise. `reason`: text for people, '' for none. */
export const promiseOfSilence = (nodeName: string, untilMs: number, reason: string): KubeRequest => ({
  method: 'PATCH',
  path: nodePath(nodeName),
  contentType: 'application/merge-patch+json',
  body: {
    metadata: {
      annotations: {
        [PLANNED_UNTIL_ANNOTATION]: rfc3339(untilMs),
        [PLANNED_REASON_ANNOTATION]: reason === '' ? null : reason,
      },
    },
  },
});
