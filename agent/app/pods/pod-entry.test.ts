import { expect, it } from 'vitest';
import type { KubePod } from '../../../shared/kinds/types.ts';
import type { PodStatus } from '../../rules/shutdown-status.ts';
import {
  byAge,
  hasFinished,
  isDeleted,
  isTerminal,
  isWantedAgain,
  logFields,
  newPodEntry,
  type PodEntry,
} from './pod-entry.ts';

const podOf = (name: string, more: object = {}, phase?: NonNullable<KubePod['status']>['phase']): KubePod => ({
  metadata: { name, namespace: 'ns', uid: `${name}-uid`, ...more },
  ...(phase === undefined ? {} : { status: { phase } }),
});

it('needs no admission once it has ended', () => {
  const admissions = (['Pending', 'Running', 'Succeeded', 'Failed'] as const).map(
    (phase) => newPodEntry(podOf('a', {}, phase), true).admission,
  );
  expect(admissions).toEqual(['waiting', 'waiting', 'admitted', 'admitted']);
});

it('has finished by its own status or by that of the API', () => {
  const entry = newPodEntry(podOf('a'), true);
  expect(hasFinished(entry)).toBe(false);
  expect(hasFinished({ ...entry, pod: podOf('a', {}, 'Failed') })).toBe(true);
  const phases = ['Pending', 'Running', 'Unknown', 'Succeeded', 'Failed'];
  expect(phases.map((phase) => isTerminal({ phase }))).toEqual([false, false, false, true, true]);
  expect(isTerminal(undefined)).toBe(false);
  expect(hasFinished({ ...entry, status: { phase: 'Succeeded' } })).toBe(true);
});

it('is deleted, and named in logs', () => {
  expect(isDeleted(newPodEntry(podOf('a'), true))).toBe(false);
  expect(isDeleted(newPodEntry(podOf('a', { deletionTimestamp: '2023-01-01T00:00:00Z' }), true))).toBe(true);
  expect(logFields(newPodEntry(podOf('a'), true))).toEqual({ namespace: 'ns', pod: 'a', podUid: 'a-uid' });
});

it('is sorted by age, then by name', () => {
  const entryOf = (name: string, second?: number) =>
    newPodEntry(podOf(name, second === undefined ? {} : { creationTimestamp: `2023-01-01T00:00:0${second}Z` }), true);
  const entries = [entryOf('b', 2), entryOf('c', 1), entryOf('a', 2), entryOf('z')];
  expect(entries.sort(byAge).map(({ pod }) => pod.metadata.name)).toEqual(['z', 'c', 'a', 'b']);
});

it('is wanted again when the API does not know yet that it was terminated, unless for good', () => {
  const kill = { graceSeconds: 0, change: (status: PodStatus) => status, done: Promise.withResolvers<void>() };
  const entry = { ...newPodEntry(podOf('a'), true), admission: 'admitted' as const, status: { phase: 'Running' } };
  const ended = { ...entry, status: { phase: 'Failed' } };
  expect([entry, ended].map(isWantedAgain)).toEqual([true, false]);
  expect(isWantedAgain({ ...ended, kill })).toBe(true);
  expect(isWantedAgain({ ...ended, kill: { ...kill, isFinal: true } })).toBe(false);
});

it.each<[string, Partial<PodEntry>, boolean]>([
  ['runs', {}, true],
  ['is in no list', { present: false }, false],
  ['waits for its admission', { admission: 'waiting' }, false],
  ['was refused', { admission: 'refused' }, false],
  ['is being deleted', { pod: podOf('a', { deletionTimestamp: '2023-01-01T00:00:00Z' }) }, false],
  ['has ended in the API', { pod: podOf('a', {}, 'Succeeded') }, false],
  ['is static', { pod: podOf('a', { annotations: { 'kubernetes.io/config.source': 'file' } }) }, false],
  ['has no status', { status: undefined as never }, true],
])('a pod that %s is wanted after a restart without the API: %j', (_, more, isWanted) => {
  const entry = { ...newPodEntry(podOf('a'), true), admission: 'admitted' as const, status: { phase: 'Running' } };
  expect(isWantedAgain({ ...entry, ...more })).toBe(isWanted);
});

it('is not wanted again once the API knows that it was terminated', () => {
  const kill = { graceSeconds: 0, change: (status: PodStatus) => status, done: Promise.withResolvers<void>() };
  const status = { phase: 'Failed' };
  const entry = { ...newPodEntry(podOf('a'), true), admission: 'admitted' as const, status, kill };
  expect(isWantedAgain({ ...entry, reported: JSON.stringify({ phase: 'Running' }) })).toBe(true);
  expect(isWantedAgain({ ...entry, reported: JSON.stringify(status) })).toBe(false);
});
