import { expect, it } from 'vitest';
import type { ContainerState } from '../../ports/pod-runtime.ts';
import { dueContainerEvents } from './container-events.ts';
import { newPodEntry } from './pod-entry.ts';

const RUNNING: ContainerState = { kind: 'running', startedAtMs: 1 };
const waiting = (reason: string, message?: string): ContainerState => ({
  kind: 'waiting',
  reason,
  ...(message === undefined ? {} : { message }),
});
const ENDED: ContainerState = { kind: 'terminated', exitCode: 0, reason: 'Completed', startedAtMs: 1, finishedAtMs: 2 };

/** A pod with one container. Returns the events of its next state, as `TYPE REASON MESSAGE`. */
function containerOf(entry = newPodEntry({ metadata: { uid: 'u', name: 'web', namespace: 'default' } }, true)) {
  return (state: ContainerState, containerId: string | undefined = 'run-0'): string[] => {
    const container = { name: 'main', state, restartCount: 0, ...(containerId === '' ? {} : { containerId }) };
    const events = dueContainerEvents(entry, { uid: 'u', namespace: 'default', name: 'web', containers: [container] });
    return events.map(({ type, reason, message }) => `${type} ${reason} ${message}`);
  };
}
const STARTED = 'Normal Started Started container main';
const BACK_OFF = 'Warning BackOff Back-off restarting failed container main';

it('each start is one event, however often it is looked at', () => {
  const look = containerOf();
  expect([look(RUNNING), look(RUNNING), look(RUNNING, 'run-1'), look(RUNNING, 'run-1')]).toEqual([
    [STARTED],
    [],
    [STARTED],
    [],
  ]);
});

it.each(['ContainerCreating', 'PodInitializing'])('%s is no event', (reason) => {
  const look = containerOf();
  expect([look(waiting(reason, 'soon'), ''), look(RUNNING)]).toEqual([[], [STARTED]]);
});

it('each wait is one event, and the start after it another one', () => {
  const look = containerOf();
  const backOff = waiting('CrashLoopBackOff', 'back-off 10s');
  expect([look(RUNNING), look(backOff), look(backOff), look(RUNNING, 'run-1'), look(backOff, 'run-1')]).toEqual([
    [STARTED],
    [BACK_OFF],
    [],
    [STARTED],
    [BACK_OFF],
  ]);
});

it('another message of a wait is another event', () => {
  const look = containerOf();
  const failed = (message?: string) => look(waiting('CreateContainerConfigError', message), '');
  expect([failed('no command'), failed('no command'), failed('no image'), failed()]).toEqual([
    ['Warning Failed Error: no command'],
    [],
    ['Warning Failed Error: no image'],
    ['Warning Failed Error: '],
  ]);
});

it('the start of a container that an earlier agent started is no event, its next one is', () => {
  const entry = { ...newPodEntry({ metadata: { uid: 'u' } }, true), adopted: true };
  const look = containerOf(entry);
  expect(look(RUNNING)).toEqual([]);
  entry.adopted = false;
  expect([look(RUNNING), look(RUNNING, 'run-1')]).toEqual([[], [STARTED]]);
});

it('a terminated container, and a pod that is not there, have no event', () => {
  expect(containerOf()(ENDED)).toEqual([]);
  expect(dueContainerEvents(newPodEntry({ metadata: { uid: 'u' } }, true), undefined)).toEqual([]);
});
