/**
 * What the containers of a pod start with besides their spec: variables, volumes and service account tokens.
 *
 * There is no watch. An object is read before the pod starts, and again every five minutes while the pod is on this
 * node. Its files then change at once. Variables change with the next start of the container, as with a kubelet.
 */

import { defined } from '../../../shared/defined.ts';
import type { Container, KubePod, ResourceList } from '../../../shared/kinds/types.ts';
import type { Log } from '../../../shared/observability/log.ts';
import type { ContainerInputSource, ContainerInputs, ContainerMount } from '../../ports/container-inputs.ts';
import type { KubeApi } from '../../ports/kube-api.ts';
import type { PodVolumes, VolumeName } from '../../ports/pod-volumes.ts';
import type { AgentTime, Fraction } from '../../ports/time.ts';
import { containerEnv, type Variables } from '../../rules/env.ts';
import type { NodeEvent } from '../../rules/node-event.ts';
import type { MachineFacts } from '../../rules/pod-fields.ts';
import { type ObjectSource, objectsOf } from '../../rules/pod-objects.ts';
import type { RememberedPods, RememberedSecrets, RememberedToken } from '../../rules/remembered-state.ts';
import { fsGroupOf, tokenKey, tokensOf, type VolumeContent, volumeContent } from '../../rules/volume-content.ts';
import { mountPlan, type PlannedMount } from '../../rules/volume-mounts.ts';
import { describeError } from '../describe-error.ts';
import { AccountTokens } from './account-tokens.ts';
import { type ClaimedVolume, claimedVolume, isClaimed } from './claimed-volumes.ts';
import { ReferencedObjects } from './referenced-objects.ts';

/** Interval of the reads while a pod is on this node. Milliseconds. */
export const OBJECT_REFRESH_MS = 300_000;
const REFRESH_JITTER = 0.1;
/** Objects younger than this are not read again for another pod or container. Milliseconds. */
const FRESH_MS = 10_000;
/** Shortest and longest sleep of the refresh loop: what became due during a suspend is seen soon. Milliseconds. */
const LOOP_MIN_MS = 1_000;
const LOOP_MAX_MS = 60_000;
/** The same while nothing will be due. */
const LOOP_IDLE_MS = 3_600_000;

export interface PodInputsDependencies {
  readonly api: KubeApi;
  readonly volumes: PodVolumes;
  readonly time: AgentTime;
  readonly fraction: Fraction;
  readonly log: Log;
  readonly hostIp: () => string | undefined;
  readonly allocatable: () => ResourceList | undefined;
  readonly recordEvent: (pod: KubePod, event: NodeEvent) => void;
  /** Where pods find the API: KUBERNETES_SERVICE_HOST and the others. */
  readonly services: Variables;
  /** Text of a resolv.conf for the pod; undefined: it has that of the runtime. */
  readonly resolverOf?: ((pod: KubePod) => string | undefined) | undefined;
  /** What pods used before this agent started. */
  readonly remembered?: RememberedInputs | undefined;
}

export type RememberedInputs = Pick<RememberedPods, 'configMaps'> & RememberedSecrets;

interface PreparedPod {
  pod: KubePod;
  /** What is known of the volumes of its claims, by volume. */
  readonly claimed: Map<string, ClaimedVolume>;
  readonly tokens: AccountTokens;
  /** When its objects are read again. Monotonic milliseconds. */
  refreshAtMs: number;
  /** Volumes are set up. */
  isReady: boolean;
}

/** The volume with the resolv.conf of a pod. No volume of a pod can have this name. */
const RESOLVER_VOLUME = '.resolver';
const RESOLVER_FILE = 'resolv.conf';
const RESOLVER_TARGET = '/etc/resolv.conf';
const RESOLVER_MODE = 0o644;

/** Volumes of a pod cannot be set up now. */
export class VolumeSetupError extends Error {
  override readonly name = 'VolumeSetupError';
}

export class PodInputs implements ContainerInputSource {
  readonly #dependencies: PodInputsDependencies;
  readonly #objects: ReferencedObjects;
  readonly #pods = new Map<string, PreparedPod>();
  /** Removals that are under way, by pod uid. */
  readonly #removals = new Map<string, Promise<void>>();
  readonly #rememberedTokens: Map<string, readonly RememberedToken[]>;
  #wake = new AbortController();

  constructor(dependencies: PodInputsDependencies) {
    this.#dependencies = dependencies;
    this.#objects = new ReferencedObjects(dependencies);
    const { configMaps = [], secrets = [], tokens = [] } = dependencies.remembered ?? {};
    this.#objects.restore([...configMaps, ...secrets]);
    this.#rememberedTokens = Map.groupBy(tokens, ({ podUid }) => podUid);
  }

  /**
   * Reads what the pod refers to, and sets up its volumes. `fromMemory`: what is remembered is used, without a request
   * that may wait for a network that is down; it is read when the refresh loop runs.
   *
   * @throws VolumeSetupError
   */
  async prepare(pod: KubePod, fromMemory = false): Promise<void> {
    const uid = pod.metadata.uid ?? '';
    // A static pod that was removed and added again has the same uid.
    await this.#removals.get(uid)?.catch(() => undefined);
    const prepared = this.#pods.get(uid) ?? this.#add(uid, pod);
    prepared.pod = pod;
    if (fromMemory && this.#isRemembered(prepared)) prepared.refreshAtMs = this.#dependencies.time.monotonicMs();
    else await Promise.all([this.#read(prepared, FRESH_MS), this.#readClaims(prepared)]);
    const faults = this.#setUpVolumes(prepared);
    if (faults.length > 0) throw new VolumeSetupError(faults.join('; '));
    prepared.isReady = true;
    this.#wake.abort();
  }

  /** What these pods use now. */
  inUse(pods: readonly KubePod[]): RememberedInputs {
    const used = pods.flatMap((pod) =>
      objectsOf(pod).map((reference) => ({ namespace: pod.metadata.namespace ?? '', ...reference })),
    );
    const each = new Map(used.map((one) => [`${one.kind}/${one.namespace}/${one.name}`, one]));
    const found = [...each.values()].flatMap((one) => {
      const read = this.#objects.get(one.namespace, one);
      return read.kind === 'found' ? [{ ...one, object: read.object }] : [];
    });
    return {
      configMaps: found.filter(({ kind }) => kind === 'configmap'),
      secrets: found.filter(({ kind }) => kind === 'secret'),
      tokens: pods.flatMap(({ metadata: { uid: podUid = '' } }) =>
        [...(this.#pods.get(podUid)?.tokens.issued() ?? [])].map(([key, token]) => ({ podUid, key, token })),
      ),
    };
  }

  inputsOf(pod: KubePod, container: Container, podIp?: string): ContainerInputs {
    const env = containerEnv({
      pod,
      container,
      objects: this.#sourceFor(pod),
      machine: { ...this.#machine(), ...defined({ podIp }) },
      services: this.#dependencies.services,
    });
    if (env.kind === 'failed') return configFault(env.message);
    const hasResolver = this.#dependencies.resolverOf?.(pod) !== undefined;
    const needsVolumes = hasResolver || (container.volumeMounts ?? []).length > 0;
    if (this.#pods.get(pod.metadata.uid ?? '')?.isReady !== true && needsVolumes) {
      return configFault('the volumes of the pod are not set up yet');
    }
    const plan = mountPlan(pod, container, env.variables);
    if (plan.kind === 'failed') return configFault(plan.message);
    const isResolverOwn = plan.mounts.some(({ target }) => target === RESOLVER_TARGET);
    try {
      const mounts = plan.mounts.map((mount) => this.#mountOf(pod, mount));
      if (hasResolver && !isResolverOwn) mounts.push({ ...this.#mountOf(pod, RESOLVER_MOUNT), replacesMachine: true });
      for (const event of env.events) this.#dependencies.recordEvent(pod, event);
      return { kind: 'ready', variables: env.variables, mounts };
    } catch (cause) {
      const message = `failed to prepare subPath for volumeMount of container ${JSON.stringify(container.name)}`;
      return configFault(`${message}: ${(cause as Error).message}`);
    }
  }

  async readMissing(pod: KubePod): Promise<void> {
    const namespace = pod.metadata.namespace ?? '';
    await this.#objects.read(namespace, objectsOf(pod), FRESH_MS).catch((cause: unknown) => {
      this.#dependencies.log.warn('the objects of a pod cannot be read', { why: describeError(cause) });
    });
  }

  /** The pod as the API has it now: files of the downward API show its labels and annotations. */
  changed(pod: KubePod): void {
    const prepared = this.#pods.get(pod.metadata.uid ?? '');
    if (prepared === undefined || prepared.pod === pod) return;
    prepared.pod = pod;
    if (prepared.isReady) this.#setUpVolumes(prepared);
  }

  /** Refreshes objects, files and tokens until stopped. */
  async run(stop: AbortSignal): Promise<void> {
    const { time, log } = this.#dependencies;
    while (!stop.aborted) {
      this.#wake = new AbortController();
      const nowMs = time.monotonicMs();
      for (const prepared of [...this.#pods.values()]) {
        if (!prepared.isReady || dueMs(prepared) > nowMs) continue;
        await this.#refresh(prepared).catch((cause: unknown) => {
          const { name, namespace } = prepared.pod.metadata;
          log.warn('the volumes of a pod could not be refreshed', { namespace, pod: name, why: describeError(cause) });
        });
      }
      const nextMs = Math.min(...[...this.#pods.values()].map(dueMs)) - time.monotonicMs();
      const waitMs = nextMs === Number.POSITIVE_INFINITY ? LOOP_IDLE_MS : Math.min(nextMs, LOOP_MAX_MS);
      await time.sleep(Math.max(LOOP_MIN_MS, waitMs), AbortSignal.any([stop, this.#wake.signal]));
    }
  }

  /** Bytes that an emptyDir uses. @throws Error of the file system */
  usedBytes(name: VolumeName): Promise<number> {
    return this.#dependencies.volumes.usedBytes(name);
  }

  /** Removes the volumes of a pod. @throws Error of the file system */
  remove(podUid: string): Promise<void> {
    const underWay = this.#removals.get(podUid);
    if (underWay !== undefined) return underWay;
    const removal = this.#remove(podUid).finally(() => this.#removals.delete(podUid));
    this.#removals.set(podUid, removal);
    return removal;
  }

  /** Starts to remove the volumes of all other pods: a previous agent may have been killed before it did. */
  keepOnly(podUids: ReadonlySet<string>): void {
    const { volumes, log } = this.#dependencies;
    for (const uid of volumes.podUids()) {
      if (podUids.has(uid)) continue;
      this.remove(uid).catch((cause: unknown) => {
        // The next call tries again. The other pods must not wait for this one.
        log.warn('the volumes of a removed pod cannot be removed', { podUid: uid, why: describeError(cause) });
      });
    }
  }

  async #remove(podUid: string): Promise<void> {
    // Before the first wait: a refresh would write the files again.
    if (this.#pods.delete(podUid)) this.#forgetUnusedObjects();
    await this.#dependencies.volumes.remove(podUid);
  }

  #forgetUnusedObjects(): void {
    const used = [...this.#pods.values()].flatMap(({ pod }) =>
      ReferencedObjects.keysOf(pod.metadata.namespace ?? '', objectsOf(pod)),
    );
    this.#objects.keepOnly(new Set(used));
  }

  #add(uid: string, pod: KubePod): PreparedPod {
    const tokens = new AccountTokens(this.#dependencies);
    tokens.restore((this.#rememberedTokens.get(uid) ?? []).map(({ key, token }) => [key, token]));
    this.#rememberedTokens.delete(uid);
    const prepared: PreparedPod = { pod, claimed: new Map(), tokens, refreshAtMs: 0, isReady: false };
    this.#pods.set(uid, prepared);
    return prepared;
  }

  /** Whether each object and token of the pod is known. */
  #isRemembered({ pod, tokens }: PreparedPod): boolean {
    const issued = tokens.issued();
    const source = this.#sourceFor(pod);
    return (
      objectsOf(pod).every(({ kind, name }) => source(kind, name).kind === 'found') &&
      tokensOf(pod).every((each) => issued.has(tokenKey(each)))
    );
  }

  async #refresh(prepared: PreparedPod): Promise<void> {
    await this.#read(prepared, OBJECT_REFRESH_MS / 2);
    // It may have been removed meanwhile, and its files with it.
    const isKnown = this.#pods.get(prepared.pod.metadata.uid ?? '') === prepared;
    if (isKnown) this.#setUpVolumes(prepared);
  }

  async #read(prepared: PreparedPod, ageMaxMs: number): Promise<void> {
    const { time, fraction } = this.#dependencies;
    const { pod, tokens } = prepared;
    prepared.refreshAtMs = time.monotonicMs() + OBJECT_REFRESH_MS * (1 + REFRESH_JITTER * fraction());
    await Promise.all([this.#objects.read(pod.metadata.namespace ?? '', objectsOf(pod), ageMaxMs), tokens.renew(pod)]);
  }

  /** Once: a claim keeps its volume. */
  async #readClaims({ pod, claimed }: PreparedPod): Promise<void> {
    const wanted = (pod.spec?.volumes ?? []).filter(
      (each) => isClaimed(each) && claimed.get(each.name ?? '')?.kind !== 'directory',
    );
    for (const volume of wanted) {
      claimed.set(volume.name ?? '', await claimedVolume(this.#dependencies.api, pod, volume));
    }
  }

  /** Without an answer of the API, it is the directory that the volume had before. */
  #linkClaimed({ pod, claimed }: PreparedPod, volume: string): string | undefined {
    const { volumes } = this.#dependencies;
    const target = { podUid: pod.metadata.uid ?? '', volume };
    const found = claimed.get(volume);
    if (found?.kind === 'failed') return found.message;
    const path = found?.kind === 'directory' ? found.path : volumes.linkedPath(target);
    if (path === undefined) return found?.kind === 'unknown' ? found.message : 'the claim was not read yet';
    try {
      volumes.linkTo(target, path);
      return undefined;
    } catch (cause) {
      return (cause as Error).message;
    }
  }

  /** Returns why volumes could not be set up. Files of such a volume stay as they are. */
  #setUpVolumes(prepared: PreparedPod): readonly string[] {
    const { pod, tokens } = prepared;
    const { recordEvent } = this.#dependencies;
    const facts = {
      pod,
      objects: this.#sourceFor(pod),
      machine: this.#machine(),
      token: tokens.get.bind(tokens),
    };
    const failed = (volume: string, fault: string | undefined): readonly string[] => {
      if (fault === undefined) return [];
      const message = `MountVolume.SetUp failed for volume ${JSON.stringify(volume)} : ${fault}`;
      recordEvent(pod, { type: 'Warning', reason: 'FailedMount', message });
      return [message];
    };
    const ofVolumes = (pod.spec?.volumes ?? []).flatMap((volume) => {
      const { name = '' } = volume;
      const content = isClaimed(volume) ? undefined : volumeContent(volume, facts);
      return failed(name, content === undefined ? this.#linkClaimed(prepared, name) : this.#setUp(pod, name, content));
    });
    const resolver = this.#resolver(pod);
    return resolver === undefined
      ? ofVolumes
      : [...ofVolumes, ...failed(RESOLVER_VOLUME, this.#setUp(pod, RESOLVER_VOLUME, resolver))];
  }

  #resolver(pod: KubePod): VolumeContent | undefined {
    const text = this.#dependencies.resolverOf?.(pod);
    if (text === undefined) return undefined;
    const file = { bytes: new TextEncoder().encode(text), mode: RESOLVER_MODE };
    return { kind: 'files', files: new Map([[RESOLVER_FILE, file]]), isSecret: false };
  }

  #setUp(pod: KubePod, name: string, content: VolumeContent): string | undefined {
    const { volumes } = this.#dependencies;
    const target = { podUid: pod.metadata.uid ?? '', volume: name };
    const groupId = fsGroupOf(pod);
    try {
      switch (content.kind) {
        case 'failed':
          return content.message;
        case 'files':
          volumes.writeFiles(target, content.files, { groupId, inMemory: content.isSecret });
          return undefined;
        case 'emptyDir':
          volumes.makeEmptyDir(target, { groupId, inMemory: content.inMemory });
          return undefined;
        case 'hostPath':
          volumes.checkHostPath(content.path, content.type);
          return undefined;
      }
    } catch (cause) {
      return (cause as Error).message;
    }
  }

  /** @throws Error for a sub path that cannot be used */
  #mountOf(pod: KubePod, { volume, target, subPath, readOnly }: PlannedMount): ContainerMount {
    const { volumes } = this.#dependencies;
    const name = { podUid: pod.metadata.uid ?? '', volume: volume.name ?? '' };
    const whole = volume.hostPath?.path ?? volumes.pathOf(name);
    const source = subPath === '' ? whole : volumes.subPathOf(whole, subPath);
    const isInVolume = volume.hostPath === undefined || subPath !== '';
    const identity = isInVolume ? volumes.identityOf(source) : undefined;
    return {
      source,
      target,
      readOnly,
      isFile: volumes.isFile(source),
      isPart: subPath !== '',
      ...defined({ identity }),
    };
  }

  #sourceFor(pod: KubePod): ObjectSource {
    return (kind, name) => this.#objects.get(pod.metadata.namespace ?? '', { kind, name });
  }

  #machine(): MachineFacts {
    const { hostIp, allocatable } = this.#dependencies;
    return { hostIp: hostIp(), allocatable: allocatable() ?? {} };
  }
}

/** Infinity for a pod that reads nothing. */
function dueMs({ pod, tokens, refreshAtMs, isReady }: PreparedPod): number {
  if (!isReady) return Number.POSITIVE_INFINITY;
  const objectsMs = objectsOf(pod).length > 0 ? refreshAtMs : Number.POSITIVE_INFINITY;
  return Math.min(objectsMs, tokensOf(pod).length > 0 ? tokens.nextRefreshMs() : Number.POSITIVE_INFINITY);
}

const RESOLVER_MOUNT: PlannedMount = {
  volume: { name: RESOLVER_VOLUME },
  target: RESOLVER_TARGET,
  subPath: RESOLVER_FILE,
  readOnly: true,
};

const configFault = (message: string): ContainerInputs => ({
  kind: 'notReady',
  reason: 'CreateContainerConfigError',
  message,
});
