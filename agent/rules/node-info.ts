/** status.nodeInfo: what the node says about its machine and software. */
import type { MachineFacts } from '../ports/machine.ts';

export interface NodeInfoInput {
  /** Undefined when the machine could not be read: what was said before stays. */
  readonly facts: MachineFacts | undefined;
  /** `<type>://<version>`; undefined when the runtime does not answer. */
  readonly runtimeVersion: string | undefined;
  readonly agentVersion: string;
}

/** kubeProxyVersion is empty, as newer releases leave it: no proxy is known to us. Swap is reported in bytes. */
export function nodeInfoOf(
  existing: Readonly<Record<string, unknown>> | undefined,
  input: NodeInfoInput,
): Record<string, unknown> {
  const { facts } = input;
  const machine =
    facts === undefined
      ? {}
      : {
          machineID: facts.machineId,
          systemUUID: facts.systemUuid,
          bootID: facts.bootId,
          kernelVersion: facts.kernelVersion,
          osImage: facts.osImage,
          operatingSystem: facts.operatingSystem,
          architecture: facts.architecture,
          swap: { capacity: facts.swapBytes },
        };
  return {
    ...existing,
    ...machine,
    containerRuntimeVersion: input.runtimeVersion ?? 'Unknown',
    kubeletVersion: input.agentVersion,
    kubeProxyVersion: '',
  };
}

/** A boot id that is known and differs from the one before tells of a reboot. */
export const wasRebooted = (previousBootId: string | undefined, bootId: string): boolean =>
  previousBootId !== undefined && previousBootId !== '' && previousBootId !== bootId;
