/** A CustomResourceDefinition as an object, and the parts of it that are stored beside its item. */

import type { JsonObject } from '../../kubernetes/json.ts';
import { formatTime } from '../../kubernetes/time.ts';
import type { Section } from '../../store/section-store.ts';
import type { JsonSchema } from '../custom-resources/schema-node.ts';
import type { KubeObject } from '../types.ts';
import { CLEANUP_FINALIZER } from './resource.ts';

export interface DefinitionNames {
  plural: string;
  kind: string;
  singular?: string;
  listKind?: string;
  shortNames?: string[];
  categories?: string[];
}

export interface DefinitionVersion {
  name: string;
  served: boolean;
  storage: boolean;
  deprecated?: boolean;
  deprecationWarning?: string;
  schema?: { openAPIV3Schema?: JsonSchema };
  subresources?: {
    status?: JsonObject;
    scale?: { specReplicasPath: string; statusReplicasPath: string; labelSelectorPath?: string };
  };
  additionalPrinterColumns?: JsonObject[];
  selectableFields?: { jsonPath?: string }[];
}

export interface DefinitionCondition {
  type: string;
  status: string;
  lastTransitionTime?: string;
  reason?: string;
  message?: string;
}

export interface KubeCustomResourceDefinition extends KubeObject {
  spec?: {
    group: string;
    names: DefinitionNames;
    scope: string;
    versions: DefinitionVersion[];
    conversion?: { strategy: string; webhook?: JsonObject };
    preserveUnknownFields?: boolean;
  };
  status?: {
    conditions?: DefinitionCondition[];
    acceptedNames?: Partial<DefinitionNames>;
    storedVersions?: string[];
  };
}

/** A definition as its item has it: without schemas, managedFields and annotations, which are sections. */
export interface StoredDefinition extends KubeCustomResourceDefinition {
  sections?: readonly Section[];
}

/** An object of this kind. Its schema has checked its shape. */
export const asDefinition = (object: KubeObject): StoredDefinition => object as StoredDefinition;

const SCHEMA = 'schema:';
const MANAGED_FIELDS = 'managedFields';
const ANNOTATIONS = 'annotations';

export const schemaSection = (version: string): string => `${SCHEMA}${version}`;

/** The texts of the sections, and the rest of the object. */
export function splitDefinition(definition: KubeCustomResourceDefinition): {
  readonly core: StoredDefinition;
  readonly texts: ReadonlyMap<string, string>;
} {
  const texts = new Map<string, string>();
  const { managedFields, annotations, ...metadata } = definition.metadata;
  if (managedFields !== undefined) texts.set(MANAGED_FIELDS, JSON.stringify(managedFields));
  if (annotations !== undefined) texts.set(ANNOTATIONS, JSON.stringify(annotations));
  const { spec } = definition;
  const versions = (spec?.versions ?? []).map(({ schema, ...version }) => {
    if (schema !== undefined) texts.set(schemaSection(version.name), JSON.stringify(schema));
    return version;
  });
  return { core: { ...definition, metadata, ...(spec && { spec: { ...spec, versions } }) }, texts };
}

/** The whole object. `texts`: those of its sections. */
export function joinDefinition(
  stored: StoredDefinition,
  texts: ReadonlyMap<string, string>,
): KubeCustomResourceDefinition {
  const { sections: _sections, metadata, spec, ...rest } = stored;
  const read = (key: string): Record<string, unknown> => {
    const text = texts.get(key);
    return text === undefined ? {} : { [key]: JSON.parse(text) as unknown };
  };
  const versions = (spec?.versions ?? []).map((version): DefinitionVersion => {
    const text = texts.get(schemaSection(version.name));
    if (text === undefined) return version;
    const { name, served, storage, ...others } = version;
    return { name, served, storage, schema: JSON.parse(text) as NonNullable<DefinitionVersion['schema']>, ...others };
  });
  const whole: KubeCustomResourceDefinition = {
    ...rest,
    metadata: { ...metadata, ...read(ANNOTATIONS), ...read(MANAGED_FIELDS) },
    ...(spec && { spec: { ...spec, versions } }),
  };
  const { apiVersion, kind, status, ...content } = whole;
  return { apiVersion, kind, ...content, ...(status && { status }) } as KubeCustomResourceDefinition;
}

export const conditionOf = ({ status }: KubeCustomResourceDefinition, type: string): DefinitionCondition | undefined =>
  status?.conditions?.find((each) => each.type === type);

export const isEstablished = (definition: KubeCustomResourceDefinition): boolean =>
  conditionOf(definition, 'Established')?.status === 'True';

/** The object with this condition. With an unchanged status it keeps its time. */
export function withCondition(
  definition: KubeCustomResourceDefinition,
  { type, status, reason, message }: Omit<DefinitionCondition, 'lastTransitionTime'>,
  at: string,
): KubeCustomResourceDefinition {
  const before = conditionOf(definition, type);
  const lastTransitionTime = (before?.status === status ? before.lastTransitionTime : undefined) ?? at;
  const condition: DefinitionCondition = {
    type,
    status,
    lastTransitionTime,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
  };
  const conditions = definition.status?.conditions ?? [];
  const next =
    before === undefined ? [...conditions, condition] : conditions.map((each) => (each === before ? condition : each));
  return { ...definition, status: { ...definition.status, conditions: next } };
}

/** A definition that is marked as deleted waits for its objects. Source: pkg/registry/customresourcedefinition. */
export function withTermination(definition: KubeCustomResourceDefinition, nowMs: number): KubeCustomResourceDefinition {
  const { finalizers = [] } = definition.metadata;
  const all = finalizers.includes(CLEANUP_FINALIZER) ? finalizers : [...finalizers, CLEANUP_FINALIZER];
  const pending = {
    type: 'Terminating',
    status: 'True',
    reason: 'InstanceDeletionPending',
    message: 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon',
  };
  return withCondition(
    { ...definition, metadata: { ...definition.metadata, finalizers: all } },
    pending,
    formatTime(nowMs),
  );
}
