import { describe, expect, it } from 'vitest';
import type { ContainerStatus, KubePod } from '../types.ts';
import { logContainer, podLogOptions, refuseWithoutLog } from './pod-log-options.ts';

const options = (query: string) => podLogOptions('web', new URLSearchParams(query));

describe('the options of a log', () => {
  it('are read as upstream converts them', () => {
    expect(options('')).toEqual({ follow: false, previous: false, timestamps: false });
    expect(options('follow=true&previous=1&timestamps=True&tailLines=0&limitBytes=1&sinceSeconds=5')).toEqual({
      follow: true,
      previous: true,
      timestamps: true,
      tailLines: 0,
      limitBytes: 1,
      sinceSeconds: 5,
    });
    expect(options('sinceTime=2026-01-01T00:00:01Z&stream=All').sinceTimeMs).toBe(Date.UTC(2026, 0, 1, 0, 0, 1));
  });

  it.each([
    ['tailLines=-1', 'tailLines: Invalid value: -1: must be greater than or equal to 0'],
    ['limitBytes=0', 'limitBytes: Invalid value: 0: must be greater than 0'],
    ['sinceSeconds=0', 'sinceSeconds: Invalid value: 0: must be greater than 0'],
    [
      'tailLines=-1&limitBytes=0&sinceSeconds=0',
      '[tailLines: Invalid value: -1: must be greater than or equal to 0, limitBytes: Invalid value: 0: must be greater than 0, sinceSeconds: Invalid value: 0: must be greater than 0]',
    ],
    ['stream=Other', 'stream: Unsupported value: "Other": supported values: "All", "Stdout", "Stderr"'],
  ])('%s is Invalid and names the field', (query, causes) => {
    expect(() => options(query)).toThrow(`PodLogOptions "web" is invalid: ${causes}`);
  });

  it('do not say twice since when', () => {
    expect(() => options('sinceSeconds=5&sinceTime=2026-01-01T00:00:00Z')).toThrow(
      'at most one of `sinceTime` or `sinceSeconds` may be specified',
    );
  });

  it.each([
    ['tailLines=x', 400],
    ['sinceTime=soon', 400],
  ])('%s is malformed', (query, code) => {
    expect(() => options(query)).toThrow(expect.objectContaining({ status: expect.objectContaining({ code }) }));
  });
});

const pod = (spec: object, statuses: ContainerStatus[] = []): KubePod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'lp' },
  spec: spec as NonNullable<KubePod['spec']>,
  status: { containerStatuses: statuses },
});

describe('the container of a log', () => {
  const several = pod({
    initContainers: [{ name: 'i' }],
    containers: [{ name: 'a' }, { name: 'c' }],
    ephemeralContainers: [{ name: 'e' }],
  });

  it('is the only one, or the one that is named', () => {
    expect(logContainer(pod({ initContainers: [{ name: 'i' }], containers: [{ name: 'a' }] }), '')).toBe('a');
    for (const name of ['i', 'a', 'c', 'e']) expect(logContainer(several, name)).toBe(name);
  });

  it('must be named if there are several, and must exist', () => {
    expect(() => logContainer(several, '')).toThrow(
      'a container name must be specified for pod lp, choose one of: [i a c e]',
    );
    expect(() => logContainer(several, 'zz')).toThrow('container zz is not valid for pod lp');
  });
});

describe('a container without output', () => {
  const ended = (containerID?: string) => ({ terminated: { ...(containerID === undefined ? {} : { containerID }) } });
  const why = (status: ContainerStatus | undefined, previous = false): string | undefined => {
    try {
      refuseWithoutLog(pod({}, status === undefined ? [] : [{ name: 'a', ...status }]), 'a', previous);
      return undefined;
    } catch (error) {
      return (error as Error).message;
    }
  };

  it.each<[ContainerStatus | undefined, boolean, string | undefined]>([
    [undefined, false, 'container "a" in pod "lp" is not available'],
    [{ state: { running: {} } }, false, undefined],
    [{ state: { running: {} } }, true, 'previous terminated container "a" in pod "lp" not found'],
    [{ state: { running: {} }, lastState: ended('exec://1') }, true, undefined],
    [{ state: ended('exec://1') }, false, undefined],
    [{ state: ended() }, false, 'container "a" in pod "lp" is terminated'],
    [{ state: ended(), lastState: ended('exec://1') }, false, undefined],
    [
      { state: { waiting: { reason: 'ContainerCreating' } } },
      false,
      'container "a" in pod "lp" is waiting to start: ContainerCreating',
    ],
    [
      { state: { waiting: { reason: 'ErrImagePull' } } },
      false,
      'container "a" in pod "lp" is waiting to start: image can\'t be pulled',
    ],
    [
      { state: { waiting: { reason: 'ImagePullBackOff' } } },
      false,
      'container "a" in pod "lp" is waiting to start: trying and failing to pull image',
    ],
    [{ state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: ended('exec://1') }, false, undefined],
    [{ state: {} }, false, 'container "a" in pod "lp" is waiting to start - no logs yet'],
  ])('%j, previous %j: %s', (status, previous, expected) => {
    expect(why(status, previous)).toBe(expected);
  });
});
