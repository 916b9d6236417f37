/** The ConfigMaps and Secrets of the pods of this node, as the API last answered. There is no watch. */
import type { KubeApi } from '../../ports/kube-api.ts';
import type { AgentTime } from '../../ports/time.ts';
import { answeredWith, describeAnswer, objectIn } from '../../rules/kube-answer.ts';
import type { ConfigObject, ObjectKind, ObjectReference, ReadObject } from '../../rules/pod-objects.ts';
import type { RememberedObject } from '../../rules/remembered-state.ts';

interface CachedRead {
  readonly read: ReadObject;
  /** Monotonic milliseconds. */
  readonly atMs: number;
}

/** When an object was read that was remembered before this process: it is due, also an immutable one. */
const BEFORE_MS = Number.NEGATIVE_INFINITY;

export interface ReferencedObjectsDependencies {
  readonly api: KubeApi;
  readonly time: AgentTime;
}

const PLURALS: Readonly<Record<ObjectKind, string>> = { configmap: 'configmaps', secret: 'secrets' };

const keyOf = (namespace: string, { kind, name }: ObjectReference): string => `${kind}/${namespace}/${name}`;

export class ReferencedObjects {
  readonly #dependencies: ReferencedObjectsDependencies;
  readonly #reads = new Map<string, CachedRead>();
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(dependencies: ReferencedObjectsDependencies) {
    this.#dependencies = dependencies;
  }

  /** Objects as they were read before a restart. They are used until they can be read. */
  restore(objects: readonly RememberedObject[]): void {
    for (const { namespace, object, ...reference } of objects) {
      this.#reads.set(keyOf(namespace, reference), { read: { kind: 'found', object }, atMs: BEFORE_MS });
    }
  }

  /** The newest read. Sends no request. */
  get(namespace: string, reference: ObjectReference): ReadObject {
    const cached = this.#reads.get(keyOf(namespace, reference))?.read;
    // A kubelet has the same text before its first read.
    const message = `failed to sync ${reference.kind} cache: timed out waiting for the condition`;
    return cached ?? { kind: 'failed', message };
  }

  /** Reads the objects that were not found, and those older than this. */
  async read(namespace: string, references: readonly ObjectReference[], ageMaxMs: number): Promise<void> {
    const nowMs = this.#dependencies.time.monotonicMs();
    const due = references.filter((each) => {
      const cached = this.#reads.get(keyOf(namespace, each));
      if (cached?.read.kind !== 'found') return true;
      if (cached.atMs === BEFORE_MS) return true;
      return nowMs - cached.atMs >= ageMaxMs && cached.read.object.immutable !== true;
    });
    await Promise.all(due.map((each) => this.#readOnce(namespace, each)));
  }

  /** Forgets all other objects. */
  keepOnly(used: ReadonlySet<string>): void {
    for (const key of this.#reads.keys()) if (!used.has(key)) this.#reads.delete(key);
  }

  static keysOf(namespace: string, references: readonly ObjectReference[]): readonly string[] {
    return references.map((each) => keyOf(namespace, each));
  }

  /** Concurrent reads of an object are one request. */
  #readOnce(namespace: string, reference: ObjectReference): Promise<void> {
    const key = keyOf(namespace, reference);
    const underWay = this.#underWay.get(key) ?? this.#read(namespace, reference, key);
    this.#underWay.set(key, underWay);
    return underWay.finally(() => this.#underWay.delete(key));
  }

  async #read(namespace: string, { kind, name }: ObjectReference, key: string): Promise<void> {
    const { api, time } = this.#dependencies;
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/${PLURALS[kind]}/${encodeURIComponent(name)}`;
    const answer = await api.send({ method: 'GET', path });
    const object = answeredWith(answer, 200) ? objectIn<ConfigObject>(answer) : undefined;
    const atMs = time.monotonicMs();
    if (object !== undefined) this.#reads.set(key, { read: { kind: 'found', object: contentOf(object) }, atMs });
    else if (answeredWith(answer, 404)) this.#reads.set(key, { read: { kind: 'missing' }, atMs });
    else if (this.#reads.get(key)?.read.kind !== 'found') {
      // An object that was read once stays usable while the API does not answer.
      this.#reads.set(key, { read: { kind: 'failed', message: describeAnswer(answer) }, atMs });
    }
  }
}

/** The parts that pods use. Managed fields would be most of the memory. */
const contentOf = ({ data, binaryData, immutable }: ConfigObject): ConfigObject => ({
  metadata: {},
  ...(data === undefined ? {} : { data }),
  ...(binaryData === undefined ? {} : { binaryData }),
  ...(immutable === undefined ? {} : { immutable }),
});
