/** The pod in podman: the namespaces that its containers share, and its address. */
import { recordOf, textOf } from '../../../shared/kubernetes/normal-form.ts';
import {
  podmanInfraName,
  podmanPodName,
  podmanPodOptions,
  ROOT_LABEL,
  UID_LABEL,
  usesHostNetwork,
} from '../../rules/podman-pod.ts';
import type { PodProcesses } from '../runtime-exec/pod-processes.ts';
import type { PodmanCli } from './podman-cli.ts';

export const CALL_TIMEOUT_MS = 60_000;
/** Text of podman for a name that is in use already. */
const EXISTS = /already (?:exists|in use)/;

export class PodmanPod {
  readonly #podman: PodmanCli;
  readonly #processes: PodProcesses;
  readonly #rootDirectory: string;
  #ready: Promise<void> | undefined;

  constructor(podman: PodmanCli, processes: PodProcesses, rootDirectory: string) {
    this.#podman = podman;
    this.#processes = processes;
    this.#rootDirectory = rootDirectory;
    if (!usesHostNetwork(processes.pod)) processes.record.podIp ??= '';
  }

  /** Creates and starts it, unless this agent did so before. @throws PodmanError */
  ensure(): Promise<void> {
    this.#ready ??= this.#create().catch((cause: unknown) => {
      this.#ready = undefined;
      throw cause;
    });
    return this.#ready;
  }

  /** Stops all that is left of it. @throws PodmanError */
  async stop(): Promise<void> {
    this.#ready = undefined;
    const name = podmanPodName(this.#processes.uid);
    await this.#podman.run(['pod', 'stop', '--ignore', '--time', '0', name], { timeoutMs: CALL_TIMEOUT_MS });
  }

  async #create(): Promise<void> {
    const { pod, uid, record } = this.#processes;
    const call = { timeoutMs: CALL_TIMEOUT_MS };
    const options = podmanPodOptions(pod, this.#rootDirectory);
    await this.#podman.run(['pod', 'create', ...options], call).catch((cause: Error) => {
      // Created by the previous agent, or by a start that failed.
      if (!EXISTS.test(cause.message)) throw cause;
    });
    await this.#podman.run(['start', podmanInfraName(uid)], call);
    if (usesHostNetwork(pod)) return;
    const [infra = {}] = await this.#podman.json(['container', 'inspect', podmanInfraName(uid)], call);
    record.podIp = addressOf(infra);
    this.#processes.changed();
  }
}

function addressOf(infra: Record<string, unknown>): string {
  const settings = recordOf(infra['NetworkSettings']);
  const networks = Object.values(recordOf(settings['Networks'])).map(recordOf);
  const addresses = [settings, ...networks].flatMap((each) => [each['IPAddress'], each['GlobalIPv6Address']]);
  return addresses.map(textOf).find((address) => address !== '') ?? '';
}

/** Uids of the pods of this root directory, and of agents before there was a label for it. @throws PodmanError */
export async function podmanPodUids(podman: PodmanCli, rootDirectory: string): Promise<readonly string[]> {
  const list = ['pod', 'ps', '--format', 'json', '--filter', `label=${UID_LABEL}`];
  const labels = (await podman.json(list, { timeoutMs: CALL_TIMEOUT_MS })).map((pod) => recordOf(pod['Labels']));
  return labels
    .filter((each) => (textOf(each[ROOT_LABEL]) || rootDirectory) === rootDirectory)
    .map((each) => textOf(each[UID_LABEL]));
}

/** Also removes its containers. @throws PodmanError */
export const removePodmanPod = (podman: PodmanCli, podUid: string): Promise<string> =>
  podman.run(['pod', 'rm', '--force', '--ignore', '--time', '0', podmanPodName(podUid)], {
    timeoutMs: CALL_TIMEOUT_MS,
  });

/** User and stop signal of an image; undefined if the machine does not have it. @throws PodmanError */
export async function podmanImage(podman: PodmanCli, image: string) {
  try {
    const [found = {}] = await podman.json(['image', 'inspect', '--format', 'json', image], {
      timeoutMs: CALL_TIMEOUT_MS,
    });
    const config = recordOf(found['Config']);
    return { user: textOf(config['User']), stopSignal: textOf(config['StopSignal']) };
  } catch (cause) {
    if (/image not known|no such image/i.test((cause as Error).message)) return undefined;
    throw cause;
  }
}
