/** What this machine has for a start without a network. Nothing is written or pulled, also while the agent runs. */
import { join } from 'node:path';
import type { AgentConfig } from '../../config.ts';
import { imageNameFault } from '../../rules/image-name.ts';
import {
  type ImagesReading,
  neededImages,
  type OfflineReading,
  type RememberedReading,
} from '../../rules/offline-start.ts';
import { REMEMBERED_DIRECTORY, statesOf } from '../../rules/remembered-state.ts';
import { PodmanCli, PodmanError } from '../runtime-podman/podman-cli.ts';
import { podmanImage } from '../runtime-podman/podman-pod.ts';
import { staticPodFiles } from '../static-pods/static-pod-files.ts';
import { readdir } from '../system/files.ts';
import { stateGenerations } from '../system/state-generations.ts';

export type OfflineConfig = Pick<
  AgentConfig,
  'runtime' | 'rootDirectory' | 'rememberPods' | 'nodeName' | 'clusterId' | 'staticPodPath'
>;

/** @param program path of podman */
export async function readOffline(config: OfflineConfig, program = 'podman'): Promise<OfflineReading> {
  const pods = { remembered: await readRemembered(config), ...readStatic(config) };
  return { ...pods, images: await readImages(config, pods, program) };
}

async function readRemembered({ rememberPods, rootDirectory, ...owner }: OfflineConfig): Promise<RememberedReading> {
  const directory = join(rootDirectory, REMEMBERED_DIRECTORY);
  const refusal = await readdir(directory).then(() => undefined, refusalOf);
  // Also with rememberPods: none: it is another user than the agent's.
  if (refusal !== undefined) return refusal;
  if (rememberPods === 'none') return { kind: 'off' };
  const { newest, refusals } = statesOf(await stateGenerations(directory).read(), owner);
  return { kind: 'read', pods: newest?.state.pods ?? [], refusals, isAnyUsable: newest !== undefined };
}

/** Undefined for a fault that is no refusal of the kernel. */
export const refusalOf = ({ code, message }: NodeJS.ErrnoException): RememberedReading | undefined =>
  code === 'EACCES' || code === 'EPERM' ? { kind: 'forbidden', why: message } : undefined;

function readStatic({ staticPodPath, nodeName }: OfflineConfig): Pick<OfflineReading, 'staticPods' | 'staticFaults'> {
  if (staticPodPath === '') return { staticPods: [], staticFaults: [] };
  const staticFaults: string[] = [];
  const note = (message: string, fields: Readonly<Record<string, unknown>> = {}): void =>
    void staticFaults.push(`${message}: ${fields['why']}`);
  const log = { debug() {}, info() {}, warn: note, error: note };
  return { staticPods: staticPodFiles({ directory: staticPodPath, nodeName, log, nowMs: () => 0 })(), staticFaults };
}

async function readImages(
  { runtime }: OfflineConfig,
  pods: Pick<OfflineReading, 'remembered' | 'staticPods'>,
  program: string,
): Promise<ImagesReading> {
  const here = new Set<string>();
  // Another user has other images.
  if (runtime !== 'podman' || pods.remembered.kind === 'forbidden') return { kind: 'read', here };
  const podman = new PodmanCli(program);
  try {
    for (const { image, isAlwaysPulled } of neededImages(pods)) {
      // Such a name would be an option or a path of podman; no pod starts with it.
      if (isAlwaysPulled || imageNameFault(image) !== undefined) continue;
      if ((await podmanImage(podman, image)) !== undefined) here.add(image);
    }
    return { kind: 'read', here };
  } catch (cause) {
    if (!(cause instanceof PodmanError)) throw cause;
    return { kind: 'failed', why: cause.message };
  }
}
