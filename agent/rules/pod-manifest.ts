/**
 * Pods from manifest files, as the API would store them: checked, with defaults and the priority of their class. A node
 * receives only stored pods, so a plan for the manifest itself would differ.
 * Kubernetes: "Pod Priority and Preemption", "Pod Quality of Service Classes".
 */

import { preparePod } from '../../shared/kinds/pods/defaults.ts';
import {
  defaultPriorityClass,
  type PriorityClasses,
  priorityClassNameOf,
  resolvePriority,
} from '../../shared/kinds/pods/pod-admission.ts';
import { preparePriorityClass, systemPriorityClasses } from '../../shared/kinds/priorityclasses/defaults.ts';
import { validatePriorityClass } from '../../shared/kinds/priorityclasses/validate.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { isRecord, type Json } from '../../shared/kubernetes/normal-form.ts';
import type { ConfigDocument, ConfigFault } from './config-settings.ts';
import { type FieldFault, type FieldPath, podFaults, unexpected } from './pod-manifest-faults.ts';

export interface ReadPods {
  /** The pods as the API stores them. A pod with a uid was read from the API and stays unchanged. */
  readonly pods: readonly KubeObject[];
  readonly faults: readonly ConfigFault[];
}

/** Kinds of lists, each with the kind of its items if these may omit it. */
const LISTS: ReadonlyMap<string, Json> = new Map<string, Json>([
  ['List', {}],
  ['PodList', { kind: 'Pod' }],
  ['PriorityClassList', { kind: 'PriorityClass' }],
]);

/** A plan uses neither tolerations nor timestamps, so the time does not matter. */
const PREPARE = { nowMs: 0 };

interface CheckedPod {
  readonly pod: KubeObject;
  readonly path: FieldPath;
  readonly at: ConfigDocument['at'];
}

/** Each document is a Pod, a PriorityClass, or a List of them. A class may follow the pods that name it. */
export function podsOf(documents: readonly ConfigDocument[]): ReadPods {
  const classes = new Map(systemPriorityClasses().map((each) => [each.metadata.name ?? '', each]));
  const checked: CheckedPod[] = [];
  const faults: ConfigFault[] = [];
  for (const { value: document, at } of documents) {
    for (const { path, ...item } of itemsOf(document)) {
      if (item.kind === 'pod') checked.push({ pod: item.pod, path, at });
      else if (item.kind === 'class') classes.set(item.priorityClass.metadata.name ?? '', item.priorityClass);
      else faults.push(...item.faults.map((fault) => configFault(fault, at)));
    }
  }
  const pods: KubeObject[] = [];
  for (const { pod, path, at } of checked) {
    const admitted = admit(pod, classes);
    if (admitted.kind === 'stored') pods.push(admitted.pod);
    else faults.push(configFault({ path: [...path, 'spec', admitted.field], message: admitted.why }, at));
  }
  return { pods, faults };
}

/** `spec.containers[0].name` */
const fieldName = (path: FieldPath): string =>
  path.map((step, index) => (typeof step === 'number' ? `[${step}]` : `${index === 0 ? '' : '.'}${step}`)).join('');

function configFault({ path, message }: FieldFault, at: ConfigDocument['at']): ConfigFault {
  const field = fieldName(path);
  return { field, at: at(path), message: `${field || 'document'}: ${message}` };
}

/** The document itself, or the items of a List. An empty document, as between two separators, has none. */
function itemsOf(document: unknown): readonly (ReadItem & { readonly path: FieldPath })[] {
  if (document === null || document === undefined) return [];
  const typeOfItems = isRecord(document) ? LISTS.get(String(document['kind'])) : undefined;
  if (!isRecord(document) || typeOfItems === undefined) return [{ path: [], ...readItem([], document) }];
  const { items } = document;
  if (!Array.isArray(items)) {
    const path = ['items'];
    return [{ path, kind: 'faulty', faults: [unexpected(path, 'a list of pods', items)] }];
  }
  return items.map((item: unknown, index) => {
    const path = ['items', index];
    return { path, ...readItem(path, isRecord(item) ? { ...typeOfItems, ...item } : item) };
  });
}

type ReadItem =
  | { readonly kind: 'pod'; readonly pod: KubeObject }
  | { readonly kind: 'class'; readonly priorityClass: KubeObject }
  | { readonly kind: 'faulty'; readonly faults: readonly FieldFault[] };

function readItem(path: FieldPath, value: unknown): ReadItem {
  if (isRecord(value) && value['kind'] === 'Pod') return readPod(path, value);
  if (isRecord(value) && value['kind'] === 'PriorityClass') return readClass(path, value);
  const kind = isRecord(value) ? value['kind'] : value;
  return { kind: 'faulty', faults: [unexpected([...path, 'kind'], 'Pod, PriorityClass, or a List of them', kind)] };
}

function readPod(path: FieldPath, pod: Json): ReadItem {
  const faults = podFaults(path, pod);
  return faults.length > 0 ? { kind: 'faulty', faults } : { kind: 'pod', pod: pod as unknown as KubeObject };
}

function readClass(path: FieldPath, value: Json): ReadItem {
  const metadata = isRecord(value['metadata']) ? value['metadata'] : {};
  if (typeof value['value'] !== 'number') {
    return { kind: 'faulty', faults: [unexpected([...path, 'value'], 'the priority of the class', value['value'])] };
  }
  const priorityClass = preparePriorityClass.prepareForCreate({ ...value, metadata }, PREPARE);
  const causes = validatePriorityClass(priorityClass, undefined);
  if (causes.length === 0) return { kind: 'class', priorityClass };
  return {
    kind: 'faulty',
    faults: causes.map(({ field = '', message }) => ({ path: [...path, ...field.split('.')], message })),
  };
}

type Admitted =
  | { readonly kind: 'stored'; readonly pod: KubeObject }
  /** The API would answer 403. `field` of the spec. */
  | { readonly kind: 'refused'; readonly field: string; readonly why: string };

function admit(pod: KubeObject, classes: ReadonlyMap<string, KubeObject>): Admitted {
  if (pod.metadata.uid !== undefined) return { kind: 'stored', pod };
  const name = priorityClassNameOf(pod);
  const found: PriorityClasses =
    name === '' ? { globalDefault: defaultPriorityClass([...classes.values()]) } : { named: classes.get(name) };
  const outcome = resolvePriority(pod, found);
  if (outcome.kind === 'refused') {
    if (name !== '' && found.named === undefined) {
      const remedy = 'add that PriorityClass to the file, or use pods as the API returns them';
      return { kind: 'refused', field: 'priorityClassName', why: `${outcome.why}; ${remedy}` };
    }
    return { kind: 'refused', field: outcome.field, why: outcome.why };
  }
  return { kind: 'stored', pod: preparePod.prepareForCreate(pod, { ...PREPARE, priority: outcome.priority }) };
}
