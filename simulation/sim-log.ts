/** What happened in a run, in lines for people: each with its time and its subject. */

import { fleetKeyOf } from '../shared/fleet/fleet-store.ts';
import type { Happened, Writer } from './laws/truth.ts';

/** Lines kept in memory. */
const LINES_KEPT = 20_000;
/** Lines of a timeline. */
const TIMELINE_LINES_MAX = 60;
const BEAT = 'beats';
/** Lines about the state of node-monitor are shown for this long. Milliseconds. */
const STATE_SHOWN_MS = 60_000;

export interface SimLine {
  /** Node, zone, pod or watcher. '' concerns the whole run. */
  readonly subject: string;
  readonly text: string;
}

export interface SimLog {
  add(subject: string, text: string): void;
  /** The last lines about some subjects, and those about the whole run. */
  timelineOf(subjects: readonly string[]): string[];
}

export function simLog(time: { nowMs(): number }, startMs: number): SimLog {
  const lines: (SimLine & { readonly atMs: number })[] = [];

  /** Only the last of consecutive beats of a subject is shown. */
  const isRepeatedBeat = (shown: readonly SimLine[], index: number): boolean => {
    const { subject, text } = shown[index]!;
    return text === BEAT && shown.slice(index + 1).find((later) => later.subject === subject)?.text === BEAT;
  };

  return {
    add(subject, text) {
      lines.push({ atMs: time.nowMs(), subject, text });
      if (lines.length > 2 * LINES_KEPT) lines.splice(0, LINES_KEPT);
    },
    timelineOf(subjects) {
      const wanted = lines.filter(({ subject, atMs }) => {
        if (subject === 'state') return atMs > time.nowMs() - STATE_SHOWN_MS;
        return subject === '' || subjects.includes(subject);
      });
      const shown = wanted.filter((_, index) => !isRepeatedBeat(wanted, index));
      return shown.slice(-TIMELINE_LINES_MAX).map(({ atMs, subject, text }) => {
        const at = ((atMs - startMs) / 1_000).toFixed(3);
        return `${at.padStart(11)} s  ${subject === '' ? '*' : subject}  ${text}`;
      });
    },
  };
}

/** The line for a change, or undefined when it has none. */
export function lineOf(happened: Happened, by: Writer): SimLine | undefined {
  const who = by.who === '' ? by.name : `${by.name} for ${by.who}`;
  switch (happened.kind) {
    case 'heard':
      return { subject: happened.node.name, text: BEAT };
    case 'nodeCreated':
    case 'nodeGone':
      return {
        subject: happened.node.name,
        text: `${happened.kind === 'nodeGone' ? 'is deleted' : 'is created'} by ${who}`,
      };
    case 'ready':
      return { subject: happened.node.name, text: `Ready ${happened.from} > ${happened.to} by ${who}` };
    case 'tainted':
    case 'untainted':
      return { subject: happened.node.name, text: `${happened.kind} ${happened.key}:NoExecute by ${who}` };
    case 'podEnds':
      return {
        subject: happened.pod.nodeName,
        text: `pod ${happened.pod.path} ${happened.isGone ? 'no longer exists' : 'is being deleted'} by ${who}`,
      };
    case 'control': {
      const { key, newImage } = happened.change;
      const record = fleetKeyOf(key);
      if (record === undefined) return undefined;
      if (record.kind === 'zone') return { subject: record.zone, text: JSON.stringify(newImage ?? 'deleted') };
      if (record.kind === 'queue') {
        return {
          subject: record.nodeName,
          text: newImage === undefined ? `leaves the queue by ${who}` : 'waits in the queue',
        };
      }
      const { fence, at, doneAt, holding, total } = newImage ?? {};
      return { subject: 'state', text: JSON.stringify({ fence, at, doneAt, holding, total }) };
    }
    default:
      return undefined;
  }
}
