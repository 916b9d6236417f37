/**
 * Items that hold Kubernetes objects and their changes: objects, the change log, its heads, and the pods of a node.
 *
 * Only attribute `rv` holds the version, so a commit that retries with a higher version need not serialise the object
 * again.
 *
 * Texts of items, compressed where that saves capacity units. A text of a Node of 3 KB is then 0.3 KB, so its item and
 * its entry in the change log are one unit each.
 *
 * A compressed text is a binary attribute: one byte for the format, then raw deflate with a preset dictionary. A text
 * that fits a unit as it is stays a string.
 *
 * Compression needs 30 µs for a Node of 3 KB, decompression 10 to 25 µs, most of it for the state of zlib. Texts of
 * objects that were compressed, and texts that were decompressed, are kept up to a limit: what was written is read by
 * those who react to it, and clients read the same objects again and again. 1 µs finds one.
 */

import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { defined } from '../defined.ts';
import type { KubeObject, KubePod, ObjectRef } from '../kinds/types.ts';
import { jsonEqual } from '../kubernetes/json.ts';
import { type Item, StoreFault } from './item-store.ts';
import {
  changeOf,
  flag,
  number,
  packable,
  present,
  type RowValues,
  readRow,
  TTL_ATTRIBUTE,
  text,
  word,
} from './layout.ts';

export type ChangeType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** Labels and selectable fields. They decide whether a watch with a selector has seen the object before. */
export interface Selectable {
  readonly labels: Readonly<Record<string, string>>;
  readonly fields: Readonly<Record<string, string>>;
}

export interface ObjectChange {
  readonly type: ChangeType;
  readonly resourceVersion: number;
  readonly ref: ObjectRef;
  /** The object at this version; for a deleted object its last state, with the version of the deletion. */
  readonly object: KubeObject;
  /** Labels and fields before this change; absent if unchanged, and on ADDED. */
  readonly previous?: Selectable;
}

const version = present(number('rv'));

/** An object. */
export const OBJECT = {
  version,
  /** JSON, without its resourceVersion. */
  object: present(packable('o')),
  /** For stream filters. */
  kind: text('k'),
  name: text('n'),
  /** The object of a custom resource: `kind` has the name of its definition, which no built-in kind has. */
  isCustom: flag('x'),
  /** The commit changed what workload controllers read (workload-change.ts). */
  changesWorkloads: flag('w'),
  /** Of objects that expire: events. */
  expiresAtSeconds: number(TTL_ATTRIBUTE),
};

/** A change in the log, or several of one commit. */
const LOG = {
  /** Of several the highest. */
  version,
  /** One change: the object at that version; of a deleted one its last state. */
  object: OBJECT.object,
  type: present(word<ChangeType>('t')),
  /** Sort key of the object. */
  key: present(text('key')),
  /** JSON of the labels and selectable fields before, when they differ. */
  previous: text('p'),
  /** Several changes: JSON of a list of them in their order, each with its version, without expiry (FoldedChange). */
  changes: packable('e'),
  expiresAtSeconds: present(number(TTL_ATTRIBUTE)),
};

/** The head of a shard of the log. */
export const HEAD = {
  /** Nothing can be committed below it any more. */
  version: number('rv'),
  /** Highest version committed. */
  committed: number('c'),
  /** Only in a copy of another store, which may have missed changes: the log begins after this version. */
  logFrom: number('f'),
  /** The same: changes between these two versions are missing. */
  missedAfter: number('a'),
  missedBefore: number('b'),
};

/** A pod of a node. */
export const NODE_POD = {
  uid: present(text('u')),
  /** By our clock. */
  boundAtMs: present(number('b')),
};
export type NodePod = RowValues<typeof NODE_POD>;

/** A change to be written to the log. */
export interface LoggedChange {
  readonly type: ChangeType;
  /** The object's sort key. */
  readonly key: string;
  readonly resourceVersion: number;
  /** JSON of the object, as objectText returns it, and as the object's own item stores it. */
  readonly text: string;
  readonly stored: StoredText;
  /** The text that previousText returns. */
  readonly previous: string | undefined;
}

/** The JSON to store. */
export function objectText(object: KubeObject): string {
  const { resourceVersion: _, ...metadata } = object.metadata;
  return JSON.stringify({ ...object, metadata });
}

/**
 * Whether the object has expired. DynamoDB deletes an expired item within a few days and returns it until then
 * (Amazon DynamoDB Developer Guide, "Working with expired items and time to live (TTL)"), so every read filters.
 */
export function isExpired(item: Item, nowMs: number): boolean {
  const atSeconds = OBJECT.expiresAtSeconds.of(item);
  return atSeconds !== undefined && atSeconds * 1_000 <= nowMs;
}

export const storedText = (item: Item): string => unpackText(OBJECT.object.of(item));

/** The object of an object item, a log item or an image of a stream record; a copy, independent of the item. */
export function objectOf(item: Item, text = storedText(item)): KubeObject {
  const object = JSON.parse(text) as KubeObject;
  object.metadata.resourceVersion = String(version.of(item));
  return object;
}

/** resourceVersion of a stored object, as a number. Throws a RangeError if it has none. */
export function resourceVersionOf(object: KubeObject): number {
  const version = Number(object.metadata.resourceVersion ?? '');
  if (!Number.isSafeInteger(version) || version <= 0) throw new RangeError('the object has no resourceVersion');
  return version;
}

export function refOf(resource: string, sortKey: string): ObjectRef {
  const slash = sortKey.indexOf('/');
  return slash < 0
    ? { resource, namespace: '', name: sortKey }
    : { resource, namespace: sortKey.slice(0, slash), name: sortKey.slice(slash + 1) };
}

/** A log item without its key, with these changes of one shard, oldest first. */
export function logAttributes(changes: readonly LoggedChange[], expiresAtSeconds: number): Item {
  const last = changes.at(-1)!;
  const common = { version: last.resourceVersion, expiresAtSeconds };
  if (changes.length === 1) {
    const { type, key, stored: object, previous } = last;
    return changeOf(LOG, { ...common, type, key, object, previous }).set;
  }
  const entries = changes.map(
    ({ resourceVersion, type, key, text, previous }) =>
      `{"rv":${resourceVersion},"t":"${type}","key":${JSON.stringify(key)},"o":${text}` +
      `${previous === undefined ? '' : `,"p":${previous}`}}`,
  );
  return changeOf(LOG, { ...common, changes: packObjectText(`[${entries.join(',')}]`) }).set;
}

/** A change in the log, read when it is needed. */
export interface LogEntry {
  readonly resourceVersion: number;
  change(): ObjectChange;
}

/** The changes of a log item, oldest first. */
export function logEntries(resource: string, item: Item): readonly LogEntry[] {
  const changes = LOG.changes.of(item);
  if (changes === undefined) {
    return [{ resourceVersion: version.of(item), change: () => singleChange(resource, item) }];
  }
  const folded = JSON.parse(unpackText(changes)) as readonly FoldedChange[];
  return folded.map((each) => ({ resourceVersion: each.rv, change: () => foldedChange(resource, each) }));
}

interface FoldedChange {
  readonly rv: number;
  readonly t: ChangeType;
  readonly key: string;
  readonly o: KubeObject;
  readonly p?: Selectable;
}

function foldedChange(resource: string, { rv, t: type, key, o: object, p: previous }: FoldedChange): ObjectChange {
  object.metadata.resourceVersion = String(rv);
  return { type, resourceVersion: rv, ref: refOf(resource, key), object, ...defined({ previous }) };
}

function singleChange(resource: string, item: Item): ObjectChange {
  const { type, version: resourceVersion, key, previous: previousJson } = readRow(LOG, item);
  const previous = previousJson === undefined ? undefined : (JSON.parse(previousJson) as Selectable);
  return { type, resourceVersion, ref: refOf(resource, key), object: objectOf(item), ...defined({ previous }) };
}

/** The node a pod is bound to; undefined for unbound pods and everything else. */
export function nodeNameOf(resource: string, object: KubePod | undefined): string | undefined {
  const { nodeName = '' } = resource === 'pods' ? (object?.spec ?? {}) : {};
  return nodeName === '' ? undefined : nodeName;
}

/** LOG.previous: undefined if no selector can distinguish the two states. */
export const previousText = (before: Selectable, after: Selectable): string | undefined =>
  jsonEqual(before, after) ? undefined : JSON.stringify(sorted(before));

const sorted = ({ labels, fields }: Selectable): Selectable => ({
  labels: Object.fromEntries(Object.entries(labels).sort(byName)),
  fields: Object.fromEntries(Object.entries(fields).sort(byName)),
});
const byName = ([one]: [string, string], [other]: [string, string]): number => (one < other ? -1 : 1);

/** A text of an item as it is stored. */
export type StoredText = string | Uint8Array;

/** Raw deflate with OBJECT_DICTIONARY_1. */
const FORMAT_DEFLATE_1 = 1;
/**
 * A state of 80 KB instead of 270, which zlib would allocate and clear for each text. The window holds the dictionary,
 * and texts come out as short. A reader needs no larger one: its window is the largest.
 */
const DEFLATE_STATE = { windowBits: 14, memLevel: 5, chunkSize: 4_096 } as const;
const INFLATE_CHUNK_BYTES = 4_096;
/** UTF-16 units of a text that stays a string: with keys and other attributes its item is below 1 KB. */
const STRING_LENGTH_MAX = 700;
/** Bytes of a decompressed text: several times what an item can hold. */
const TEXT_BYTES_MAX = 4 * 1_024 * 1_024;

/** UTF-16 units of all texts that are kept: 2,000 Nodes. */
const KEPT_UNITS_MAX = 4_000_000;

/**
 * Text that stored objects have in common: the preset dictionary of their compression. Fragments stand
 * in the order of the stored fields; the most frequent ones are last, where deflate refers to them with fewer bits.
 *
 * Never change it: a stored object can be read only with the text it was written with. Add a second dictionary instead,
 * with a format number of its own. A test compares its hash.
 */
export const OBJECT_DICTIONARY_1 = [
  // Rare kinds, and fields of a few objects.
  '{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"spec":{"minAvailable":1,"selector":{"matchLabels":{',
  '{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"kind":"ReplicaSet","kind":"Deployment","kind":"StatefulSet",',
  '{"apiVersion":"storage.k8s.io/v1","kind":"VolumeAttachment","metadata":{"attacher":"ebs.csi.aws.com","source":{"persistentVolumeName":"pvc-',
  '"observedGeneration":1,"currentHealthy":0,"desiredHealthy":0,"disruptionsAllowed":0,"expectedPods":0,',
  '"images":[{"names":["registry.k8s.io/","docker.io/library/","quay.io/","public.ecr.aws/","ghcr.io/"@sha256:"],"sizeBytes":',
  '"runtimeHandlers":[{"name":"","features":{"recursiveReadOnlyMounts":true,"userNamespaces":true}},{"name":"runc",',
  '"features":{"supplementalGroupsPolicy":true},"volumesInUse":["kubernetes.io/csi/ebs.csi.aws.com^vol-0"],',
  '"volumesAttached":[{"name":"kubernetes.io/csi/ebs.csi.aws.com^vol-0","devicePath":""}],"hugepages-1Gi":"0","hugepages-2Mi":"0",',
  '"nodeInfo":{"swap":{"capacity":0},"systemd","amd64","Ubuntu 24.04.3 LTS","Amazon Linux 2023","-generic","-cloud-amd64","-aws","-azure"',
  '"csi.volume.kubernetes.io/nodeid":"{\\"ebs.csi.aws.com\\":\\"i-0\\"}","node.alpha.kubernetes.io/ttl":"0",',
  '"providerID":"aws:///eu-central-1a/i-0","us-east-1","us-west-2","eu-west-1","ap-southeast-1","zone-a","node.kubernetes.io/instance-type":"m7g.large",',
  '"topology.k8s.aws/zone-id":"euc1-az","failure-domain.beta.kubernetes.io/zone":"failure-domain.beta.kubernetes.io/region":',
  '"node-role.kubernetes.io/worker":"","node.kubernetes.io/exclude-from-external-load-balancers":"",',
  '"message":"Node is shutting down","TerminationByKubelet","DisruptionTarget","DeletionByTaintManager","EvictionByEvictionAPI",',
  '"reason":"NodeStatusNeverUpdated","message":"Kubelet never posted node status."',
  '"NodeNotReady","NodeReady","Started container","Created container","Pulled","Scheduled","Killing","Stopping container","BackOff",',
  // Events.
  '{"apiVersion":"v1","kind":"Event","metadata":{"name":".","namespace":"default","uid":"","creationTimestamp":"2026-',
  '"involvedObject":{"kind":"Pod","namespace":"default","name":"","uid":"","apiVersion":"v1","resourceVersion":"","fieldPath":"spec.containers{"},',
  '"involvedObject":{"kind":"Node","name":"","uid":"","apiVersion":"v1"},"reason":"RegisteredNode","message":"Node  event: Registered Node  in Controller",',
  '"reason":"RemovingNode","message":"Node  event: Removing Node  from Controller","reason":"NodeNotReady","message":"Node  status is now: NodeNotReady",',
  '"reason":"TaintManagerEviction","message":"Marking for deletion Pod ","message":"Node is not ready",',
  '"source":{"component":"kubelet","host":"taint-eviction-controller"},"source":{"component":"node-controller"},',
  '"firstTimestamp":"2026-","lastTimestamp":"2026-","count":1,"type":"Warning","type":"Normal",',
  '"reportingComponent":"node-controller","reportingInstance":"","eventTime":null}',
  // Pods.
  '"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"","uid":"","controller":true,"blockOwnerDeletion":true}],"generateName":"',
  '"labels":{"app":"","app.kubernetes.io/name":"","app.kubernetes.io/instance":"","app.kubernetes.io/component":"","pod-template-hash":"',
  '"controller-revision-hash":"","pod-template-generation":"1","deletionGracePeriodSeconds":30,"deletionTimestamp":"2026-',
  '"f:ownerReferences":{".":{},"k:{\\"uid\\":\\"\\"}":{}},"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}}},',
  '"spec":{"volumes":[{"name":"kube-api-access-","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},',
  '{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},{"downwardAPI":{"items":[{"path":"namespace","fieldRef":',
  '{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}}],"hostPath":{"path":"/var/lib/","type":""},"emptyDir":{},"persistentVolumeClaim":{"claimName":"',
  '"command":["/bin/sh","-c"],"args":["--"],"ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}],"env":[{"name":"","value":""},{"valueFrom":{"fieldRef":',
  '"resources":{"limits":{"cpu":"100m","memory":"128Mi"},"requests":{"cpu":"100m","memory":"128Mi"}},"volumeMounts":[{"name":"","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","readOnly":true}],',
  '"livenessProbe":{"httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},"readinessProbe":{',
  '"f:containers":{"k:{\\"name\\":\\"main\\"}":{".":{},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:resources":{},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},',
  '"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:nodeName":{},"f:preemptionPolicy":{},"f:priority":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},',
  '"f:terminationGracePeriodSeconds":{},"f:tolerations":{}}}}]},"spec":{"containers":[{"name":"c","image":"","resources":{},"imagePullPolicy":"Always","imagePullPolicy":"IfNotPresent",',
  '"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"serviceAccountName":"default","serviceAccount":"default","nodeName":"',
  '","restartPolicy":"Always","dnsPolicy":"ClusterFirst","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30,"enableServiceLinks":true,',
  '"tolerations":[{"key":"node.kubernetes.io/memory-pressure","operator":"Exists","effect":"NoSchedule"},{"key":"node.kubernetes.io/disk-pressure",',
  '"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},',
  '{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,"preemptionPolicy":"PreemptLowerPriority"},',
  '"status":{"phase":"Pending","qosClass":"BestEffort"},"status":{"phase":"Succeeded","status":{"phase":"Running","conditions":[{"type":"Initialized","status":"True","lastTransitionTime":"2026-',
  '"lastProbeTime":null},{"type":"Ready","status":"False","reason":"ContainersNotReady","message":"containers with unready status: [',
  '"lastProbeTime":null},{"type":"ContainersReady","status":"True","lastTransitionTime":"2026-","lastProbeTime":null},{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-',
  '"lastProbeTime":null}],"startTime":"2026-","containerStatuses":[{"name":"c","state":{"running":{"startedAt":"2026-"}},"lastState":{},"ready":true,"restartCount":0,"image":"',
  '"state":{"terminated":{"exitCode":0,"reason":"Completed","startedAt":"2026-","finishedAt":"2026-"}},"state":{"waiting":{"reason":"ContainerCreating"}},"containerID":"containerd://',
  '"imageID":"","started":true}],"qosClass":"BestEffort","qosClass":"Burstable","podIP":"10.","podIPs":[{"ip":"10."}],"hostIP":"10.","hostIPs":[{"ip":"10."}]}}',
  // Nodes.
  '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"","namespace":"default","uid":"","creationTimestamp":"2026-01-01T00:00:00Z",',
  '{"apiVersion":"v1","kind":"Node","metadata":{"name":"","uid":"","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"kubernetes.io/hostname":"","kubernetes.io/os":"linux","kubernetes.io/arch":"arm64",',
  '"beta.kubernetes.io/os":"linux","beta.kubernetes.io/arch":"arm64","topology.kubernetes.io/region":"eu-central-1","topology.kubernetes.io/zone":"eu-central-1a"},',
  '"annotations":{"volumes.kubernetes.io/controller-managed-attach-detach":"true"},"managedFields":[{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-',
  '{"manager":"kubectl","operation":"Apply","apiVersion":"v1","time":"2026-","subresource":"status"},"fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},',
  '"f:volumes.kubernetes.io/controller-managed-attach-detach":{}},"f:labels":{".":{},"f:beta.kubernetes.io/arch":{},"f:beta.kubernetes.io/os":{},"f:kubernetes.io/arch":{},"f:kubernetes.io/hostname":{},',
  '"f:kubernetes.io/os":{},"f:topology.kubernetes.io/region":{},"f:topology.kubernetes.io/zone":{}}},"f:spec":{"f:providerID":{},"f:podCIDR":{},"f:podCIDRs":{},"f:taints":{}}}}]},',
  '"f:status":{"f:conditions":{"k:{\\"type\\":\\"Ready\\"}":{".":{},"f:lastHeartbeatTime":{},"f:lastTransitionTime":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}}},"f:podIP":{},"f:startTime":{}}',
  '"spec":{"podCIDR":"10.244.","podCIDRs":["10.244.0.0/24"],"unschedulable":true,"taints":[{"key":"node.kubernetes.io/unschedulable","effect":"NoSchedule","timeAdded":"2026-',
  '"taints":[{"key":"node.kubernetes.io/not-ready","effect":"NoSchedule"}]},"taints":[{"key":"node.kubernetes.io/unreachable","effect":"NoExecute","timeAdded":"2026-01-01T00:00:00Z"}]},',
  '"spec":{},"status":{"capacity":{"cpu":"4","memory":"8037172Ki","ephemeral-storage":"51098228Ki","pods":"110"},"allocatable":{"cpu":"3920m","memory":"7562036Ki","ephemeral-storage":"47093746742","pods":"110"},',
  '"addresses":[{"type":"InternalIP","address":"10."},{"type":"ExternalIP","type":"InternalDNS","type":"Hostname","address":""}],"daemonEndpoints":{"kubeletEndpoint":{"Port":10250}},',
  '"nodeInfo":{"machineID":"","systemUUID":"","bootID":"","kernelVersion":"6.12.48+deb13-arm64","osImage":"Debian GNU/Linux 13 (trixie)","containerRuntimeVersion":"containerd://2.1.4",',
  '"kubeletVersion":"v1.34.2","kubeProxyVersion":"","operatingSystem":"linux","architecture":"arm64"}}}',
  '"status":"Unknown","reason":"NodeStatusUnknown","message":"Kubelet stopped posting node status."},',
  '"reason":"KubeletHasInsufficientMemory","message":"kubelet has insufficient memory available","reason":"KubeletNotReady","message":"container runtime is down",',
  '"conditions":[{"type":"NetworkUnavailable","status":"False","reason":"NetworkReady","message":"pod network is up",',
  '{"type":"MemoryPressure","status":"False","lastHeartbeatTime":"2026-01-01T00:00:00Z","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"KubeletHasSufficientMemory","message":"kubelet has sufficient memory available"},',
  '{"type":"DiskPressure","status":"False","lastHeartbeatTime":"2026-01-01T00:00:00Z","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"KubeletHasNoDiskPressure","message":"kubelet has no disk pressure"},',
  '{"type":"PIDPressure","status":"False","lastHeartbeatTime":"2026-01-01T00:00:00Z","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"KubeletHasSufficientPID","message":"kubelet has sufficient PID available"},',
  '{"type":"Ready","status":"True","lastHeartbeatTime":"2026-01-01T00:00:00Z","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"KubeletReady","message":"kubelet is posting ready status"}],',
].join('');

const dictionary = new TextEncoder().encode(OBJECT_DICTIONARY_1);

export function packText(text: string): StoredText {
  if (text.length <= STRING_LENGTH_MAX) return text;
  const deflated = deflateRawSync(text, { ...DEFLATE_STATE, dictionary });
  const packed = new Uint8Array(1 + deflated.length);
  packed[0] = FORMAT_DEFLATE_1;
  packed.set(deflated, 1);
  return packed;
}

/** The same for a text of an object, which is kept. Other texts would displace objects, and are hardly ever read. */
export function packObjectText(text: string): StoredText {
  const packed = packText(text);
  // A text with a lone surrogate is not what is read back.
  if (typeof packed !== 'string' && text.isWellFormed()) keep(bytesKey(packed), text);
  return packed;
}

/** Texts by their bytes. A text is then never that of another version. */
const kept = new Map<string, string>();
let keptUnits = 0;

const bytesKey = ({ buffer, byteOffset, byteLength }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString('latin1');

function keep(key: string, text: string): void {
  const units = key.length + text.length;
  if (kept.has(key)) return;
  if (keptUnits + units > KEPT_UNITS_MAX) {
    kept.clear();
    keptUnits = 0;
  }
  if (units > KEPT_UNITS_MAX) return;
  kept.set(key, text);
  keptUnits += units;
}

/** @throws StoreFault `rejected` for bytes that this release cannot read */
export function unpackText(stored: StoredText): string {
  if (typeof stored === 'string') return stored;
  if (stored[0] !== FORMAT_DEFLATE_1) {
    throw new StoreFault('rejected', `a text has the format ${stored[0]}: a newer release wrote it`, {
      retryable: false,
    });
  }
  const key = bytesKey(stored);
  const known = kept.get(key);
  if (known !== undefined) return known;
  const text = inflated(stored.subarray(1));
  keep(key, text);
  return text;
}

function inflated(deflated: Uint8Array): string {
  try {
    return inflateRawSync(deflated, {
      dictionary,
      chunkSize: INFLATE_CHUNK_BYTES,
      maxOutputLength: TEXT_BYTES_MAX,
    }).toString();
  } catch (cause) {
    throw new StoreFault('rejected', 'a compressed text is damaged', { retryable: false, cause });
  }
}
