import { describe, expect, it } from 'vitest';
import { type EventSubject, eventWrite, subjectOf } from './record-event.ts';

const API_VERSIONS: Readonly<Record<EventSubject['kind'], string>> = {
  Node: 'v1',
  Pod: 'v1',
  Namespace: 'v1',
  ReplicationController: 'v1',
  VolumeAttachment: 'storage.k8s.io/v1',
  ReplicaSet: 'apps/v1',
  Deployment: 'apps/v1',
  DaemonSet: 'apps/v1',
  StatefulSet: 'apps/v1',
  Job: 'batch/v1',
  CronJob: 'batch/v1',
  PodDisruptionBudget: 'policy/v1',
};
const NOW_MS = Date.UTC(2026, 0, 1);
const write = (more: object = {}, about: Partial<EventSubject> = {}, wantedShard?: number) =>
  eventWrite(
    {
      type: 'Normal',
      reason: 'Tested',
      message: 'it was tested',
      source: 'tester',
      about: { kind: 'Pod', namespace: 'team', name: 'web', uid: 'u1', ...about },
      ...more,
    },
    { nowMs: NOW_MS, eventUid: 'e1', ...(wantedShard === undefined ? {} : { wantedShard }) },
  );

describe('an event', () => {
  it.each(Object.entries(API_VERSIONS))('about a %s names its API version %s', (kind, apiVersion) => {
    const { object } = write({}, { kind: kind as EventSubject['kind'] }) as { object: object };
    expect(object).toMatchObject({ involvedObject: { kind, apiVersion, namespace: 'team', name: 'web', uid: 'u1' } });
  });

  it('is in the namespace of its object, or in default for one of the cluster, and expires after an hour', () => {
    expect(write()).toMatchObject({
      kind: 'create',
      ref: { resource: 'events', namespace: 'team' },
      expiresAtSeconds: NOW_MS / 1_000 + 3_600,
      object: {
        metadata: { namespace: 'team', uid: 'e1' },
        type: 'Normal',
        reason: 'Tested',
        message: 'it was tested',
        source: { component: 'tester' },
        reportingComponent: 'tester',
        count: 1,
        firstTimestamp: '2026-01-01T00:00:00Z',
        lastTimestamp: '2026-01-01T00:00:00Z',
      },
    });
    expect(write({}, { kind: 'Node', namespace: '' }).ref.namespace).toBe('default');
    expect(write({ action: 'Binding' })).toMatchObject({ object: { action: 'Binding' } });
    expect(write()).not.toHaveProperty('object.action');
  });

  it('has one name per object, reason, and occurrence or series', () => {
    const names = [
      write(),
      write({ reason: 'Other' }),
      write({ once: 1 }),
      write({ once: 2 }),
      write({ series: 'a' }),
      write({}, { uid: 'u2' }),
    ].map(({ ref }) => ref.name);
    expect(new Set(names).size).toBe(names.length);
    expect(write({ once: 1 }).ref.name).toBe(names[2]);
    for (const name of names) expect(name).toMatch(/^web\.[0-9a-f]{16}$/);
  });

  it('has a name of at most 253 characters that does not end its first part with a dot', () => {
    const { name } = write({}, { name: `${'a'.repeat(235)}.${'b'.repeat(17)}` }).ref;
    expect(name).toMatch(/^a{235}\.[0-9a-f]{16}$/);
    expect(write({}, { name: 'a'.repeat(253) }).ref.name).toHaveLength(253);
  });

  it('is about the object that it is made for', () => {
    const metadata = { namespace: 'team', name: 'web', uid: 'u1' };
    expect(subjectOf('Job', { metadata })).toEqual({ kind: 'Job', ...metadata });
    expect(subjectOf('Node', { metadata: {} })).toEqual({ kind: 'Node', namespace: '', name: '', uid: '' });
  });
});
