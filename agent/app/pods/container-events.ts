/** Events about the containers of a pod: one per start and one per wait. */
import type { RunningContainer, RunningPod } from '../../ports/pod-runtime.ts';
import type { NodeEvent } from '../../rules/node-event.ts';
import type { PodEntry } from './pod-entry.ts';
import { containersOf } from './runtime-view.ts';

/** Returns the events that are due, and marks them as recorded. */
export function dueContainerEvents(entry: PodEntry, running: RunningPod | undefined): readonly NodeEvent[] {
  if (running === undefined) return [];
  return containersOf(running).flatMap((container) => dueEvent(entry, container) ?? []);
}

function dueEvent(entry: PodEntry, { name, state, containerId = '' }: RunningContainer): NodeEvent | undefined {
  const recorded = entry.recordedStates.get(name);
  if (state.kind === 'running' && recorded !== containerId) {
    entry.recordedStates.set(name, containerId);
    // The previous agent recorded the start of an adopted container.
    return entry.adopted ? undefined : { type: 'Normal', reason: 'Started', message: `Started container ${name}` };
  }
  if (state.kind !== 'waiting' || state.reason === 'ContainerCreating' || state.reason === 'PodInitializing') {
    return undefined;
  }
  const waiting = `${containerId}?${state.message ?? ''}`;
  if (recorded === waiting) return undefined;
  entry.recordedStates.set(name, waiting);
  return state.reason === 'CrashLoopBackOff'
    ? { type: 'Warning', reason: 'BackOff', message: `Back-off restarting failed container ${name}` }
    : { type: 'Warning', reason: 'Failed', message: `Error: ${state.message ?? ''}` };
}
