import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Container, KubePod } from '../../../shared/kinds/types.ts';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { containerSpec, newRecord, RECORD_FILE, readRecord, removeQuietly, writeRecord } from './pod-record.ts';

const podOf = (containers: Container[], initContainers?: Container[]): KubePod => ({
  metadata: { name: 'web', uid: 'u' },
  spec: { containers, ...(initContainers === undefined ? {} : { initContainers }) },
});

describe('the record of a pod before its start', () => {
  it('has its containers, which are created at once', () => {
    const pod = podOf([{ name: 'main' }, { name: 'side' }]);
    const state = { kind: 'waiting', reason: 'ContainerCreating' };
    expect(newRecord(pod)).toEqual({
      version: 1,
      pod,
      initialised: true,
      stopped: false,
      containers: [
        { name: 'main', kind: 'main', state, restartCount: 0 },
        { name: 'side', kind: 'main', state, restartCount: 0 },
      ],
    });
  });

  it('has a container without a name as one with an empty name', () => {
    expect(newRecord(podOf([{}])).containers).toMatchObject([{ name: '' }]);
  });

  it('has init containers and sidecars first, for which the others wait', () => {
    const init = [{ name: 'init' }, { name: 'sidecar', restartPolicy: 'Always' }];
    const { initialised, containers } = newRecord(podOf([{ name: 'main' }], init));
    expect(initialised).toBe(false);
    const state = { kind: 'waiting', reason: 'PodInitializing' };
    expect(containers).toEqual([
      { name: 'init', kind: 'init', state, restartCount: 0 },
      { name: 'sidecar', kind: 'sidecar', state, restartCount: 0 },
      { name: 'main', kind: 'main', state, restartCount: 0 },
    ]);
  });

  it('has no containers without a spec', () => {
    expect(newRecord({ metadata: { uid: 'u' } })).toMatchObject({ initialised: true, containers: [] });
    expect(containerSpec({ metadata: { uid: 'u' } }, 'main')).toBeUndefined();
  });

  it('finds the spec of each container by its name', () => {
    const pod = podOf([{ name: 'main', image: 'a' }], [{ name: 'init', image: 'b' }]);
    const images = ['init', 'main', 'other'].map((name) => containerSpec(pod, name)?.image);
    expect(images).toEqual(['b', 'a', undefined]);
  });
});

describe('the file of a record', () => {
  let directory: string;
  beforeEach(() => {
    directory = join(folderForTest(), 'pods', 'u');
  });
  const record = newRecord(podOf([{ name: 'main' }]));

  it('is for its owner alone, and is read as it was written', () => {
    writeRecord(directory, record);
    expect(readRecord(directory)).toEqual(record);
    expect([statSync(directory).mode & 0o777, statSync(join(directory, RECORD_FILE)).mode & 0o777]).toEqual([
      0o700, 0o600,
    ]);
    expect(readdirSync(directory)).toEqual([RECORD_FILE]);
  });

  it('stays, and nothing else is left, when another one cannot be written', () => {
    mkdirSync(join(directory, RECORD_FILE), { recursive: true });
    expect(() => writeRecord(directory, record)).toThrow(/EISDIR|ENOTEMPTY|EEXIST|EPERM/);
    expect(readdirSync(directory)).toEqual([RECORD_FILE]);
  });

  it.each([
    ['of another version', { ...record, version: 2 }],
    ['without containers', { ...record, containers: {} }],
    ['without a pod', { ...record, pod: undefined }],
    ['of a pod without a uid', { ...record, pod: { metadata: {} } }],
    ['of a pod without metadata', { ...record, pod: {} }],
  ])('is no record %s', (_, content) => {
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, RECORD_FILE), JSON.stringify(content));
    expect(() => readRecord(directory)).toThrow(`${join(directory, RECORD_FILE)} is not a pod record of version 1`);
  });

  it('is removed with its directory, and removing never fails', () => {
    writeRecord(directory, record);
    removeQuietly(directory);
    removeQuietly(directory);
    expect(() => readRecord(directory)).toThrow(/ENOENT/);
    removeQuietly('/proc/self/status');
  });
});
