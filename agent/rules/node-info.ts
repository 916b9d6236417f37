/** status.nodeInfo: the machine and software of the node. */
import { defined } from '../../shared/defined.ts';
import type { MachineFacts } from '../ports/machine.ts';

export interface NodeInfoInput {
  /** Undefined if the machine could not be read: the previous values then stay. */
  readonly facts: MachineFacts | undefined;
  /** `<type>://<version>`; undefined when the runtime does not answer. */
  readonly runtimeVersion: string | undefined;
  readonly agentVersion: string;
}

/** kubeProxyVersion is empty, as in newer releases. Swap is in bytes, and absent on a machine without. */
export function nodeInfoOf(
  existing: Readonly<Record<string, unknown>> | undefined,
  input: NodeInfoInput,
): Record<string, unknown> {
  const { facts } = input;
  const { swap, ...before } = existing ?? {};
  const machine =
    facts === undefined
      ? defined({ swap })
      : {
          machineID: facts.machineId,
          systemUUID: facts.systemUuid,
          bootID: facts.bootId,
          kernelVersion: facts.kernelVersion,
          osImage: facts.osImage,
          operatingSystem: facts.operatingSystem,
          architecture: facts.architecture,
          ...(facts.swapBytes === 0 ? {} : { swap: { capacity: facts.swapBytes } }),
        };
  return {
    ...before,
    ...machine,
    containerRuntimeVersion: input.runtimeVersion ?? 'Unknown',
    kubeletVersion: input.agentVersion,
    kubeProxyVersion: '',
  };
}

/** Whether the machine has rebooted: both boot ids are known and differ. */
export const wasRebooted = (previousBootId: string | undefined, bootId: string): boolean =>
  previousBootId !== undefined && previousBootId !== '' && previousBootId !== bootId;
