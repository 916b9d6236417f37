/**
 * How a custom resource is served: what its definition says, in one version. Pure.
 * Source: k8s.io/apiextensions-apiserver pkg/registry/customresource.
 */

import { invalidValue } from '../../kubernetes/causes.ts';
import { jsonEqual } from '../../kubernetes/json.ts';
import { apiVersionOf, freshMetadata, inheritMetadata, typed } from '../../kubernetes/normal-form.ts';
import type { StructSchema } from '../../kubernetes/schema.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { subdomainName, validateObjectMetadata } from '../../kubernetes/validate-metadata.ts';
import { INT32_MAX } from '../../kubernetes/whole-number.ts';
import type { DefinitionVersion, KubeCustomResourceDefinition } from '../customresourcedefinitions/definition.ts';
import type { CustomKind, ResourceDescriptor } from '../descriptor.ts';
import { servedKind } from '../served-kind.ts';
import type { KubeObject } from '../types.ts';
import { tableOf } from './columns.ts';
import { compareVersions } from './compare-versions.ts';
import { customResourceNames } from './discovered.ts';
import { valueOfScale } from './json-path.ts';
import { defaulted, pruned } from './prune.ts';
import type { EvaluateRules } from './rules.ts';
import type { SchemaNode } from './schema-node.ts';
import { validateValue } from './validate-value.ts';

/** A schema, ready for values. */
export interface CompiledSchema {
  readonly node: SchemaNode;
  readonly struct: StructSchema;
  /** Absent: it has no rules. */
  readonly evaluateRules?: EvaluateRules;
}

const inStatus = (field = ''): string => (field === '' ? 'status' : `status.${field}`);

/** It names the most stable version that follows. Source: pkg/apiserver/customresource_handler.go. */
function deprecationOf({ spec }: KubeCustomResourceDefinition, name: string): string {
  const { group = '', names, versions = [] } = spec ?? {};
  const text = (version: string): string => `${group}/${version} ${names?.kind ?? ''}`;
  const [next] = versions
    .filter((each) => each.served && each.deprecated !== true && compareVersions(each.name, name) < 0)
    .map((each) => each.name)
    .toSorted(compareVersions);
  return `${text(name)} is deprecated${next === undefined ? '' : `; use ${text(next)}`}`;
}

/** As upstream: pkg/controller/openapi/builder/builder.go. */
function withSelectableFields(struct: StructSchema, { selectableFields = [] }: DefinitionVersion): StructSchema {
  if (selectableFields.length === 0) return struct;
  const fields = selectableFields.map(({ jsonPath = '' }) => ({ fieldPath: jsonPath.slice(1) }));
  return { ...struct, openApi: { ...struct.openApi, 'x-kubernetes-selectable-fields': fields } };
}

/** @param stored by apiVersion: the schemas of versions in which objects may be stored */
export function customResourceDescriptor(
  definition: KubeCustomResourceDefinition,
  version: DefinitionVersion,
  { node, struct, evaluateRules }: CompiledSchema,
  stored: ReadonlyMap<string, SchemaNode>,
): ResourceDescriptor {
  const names = customResourceNames(definition, version);
  const { group, kind } = names;
  const hasStatus = version.subresources?.status !== undefined;
  const { scale } = version.subresources ?? {};
  const apiVersion = apiVersionOf({ group, version: version.name });
  const toServed = (object: KubeObject): KubeObject => {
    const { apiVersion: storedVersion = '', metadata, ...content } = object;
    // Defaults are those of the stored version: those of the served one are for writes alone.
    const from = stored.get(storedVersion) ?? node;
    const read = defaulted(from, pruned(from, content, '', []));
    const kept = (from === node ? read : pruned(node, read, '', [])) as Omit<KubeObject, 'metadata'>;
    return { apiVersion, kind, metadata, ...kept } as KubeObject;
  };
  const filled = (object: KubeObject): KubeObject => defaulted(node, object) as KubeObject;
  const custom: CustomKind = {
    definition: definition.metadata.name ?? '',
    definitionUid: definition.metadata.uid ?? '',
    definitionVersion: Number(definition.metadata.resourceVersion ?? 0),
    definitionGeneration: definition.metadata.generation,
    isTerminating: definition.metadata.deletionTimestamp !== undefined,
    storageVersion: names.storageVersion,
    versions: (definition.spec?.versions ?? []).filter(({ served }) => served).map(({ name }) => name),
    schema: withSelectableFields(struct, version),
    toServed,
    ...(scale === undefined ? {} : { scale }),
    ...(version.deprecated === true
      ? { deprecation: () => version.deprecationWarning ?? deprecationOf(definition, version.name) }
      : {}),
  };
  const served = servedKind(names, {
    ...names,
    ...tableOf(version.additionalPrinterColumns),
    unconditionalUpdate: false,
    prepare: {
      hasGeneration: true,
      prepareForCreate(object) {
        const { status, ...content } = filled(object);
        const metadata = { ...freshMetadata(object.metadata), generation: 1 };
        return typed(group, version.name, kind, {
          ...content,
          ...(hasStatus || status === undefined ? {} : { status }),
          metadata,
        });
      },
      prepareForUpdate(next, old, { subresource }) {
        if (subresource === 'status') return withStatusOf(filled(next), old);
        const { status: _status, ...content } = filled(next);
        const status = hasStatus ? old['status'] : next['status'];
        const metadata = inheritMetadata(next.metadata, old.metadata);
        const prepared = typed(group, version.name, kind, {
          ...content,
          ...(status === undefined ? {} : { status }),
          metadata,
        } as KubeObject);
        const { metadata: _before, ...contentBefore } = old;
        const { metadata: _after, ...contentAfter } = prepared;
        const generation = (old.metadata.generation ?? 0) + (jsonEqual(contentBefore, contentAfter) ? 0 : 1);
        return { ...prepared, metadata: { ...metadata, generation } };
      },
    },
    validate(object, old, subresource) {
      const isStatus = subresource === 'status';
      const part = isStatus ? node.properties.get('status') : node;
      const value = isStatus ? object['status'] : object;
      const before = isStatus ? old?.['status'] : old;
      const found = part === undefined || value === undefined ? [] : validateValue(part, value, before);
      const causes = [
        ...validateObjectMetadata(object, old, { namespaced: names.namespaced, name: subdomainName }),
        // Their messages name the field within the status, as upstream.
        ...(isStatus ? found.map((cause) => ({ ...cause, field: inStatus(cause.field) })) : found),
        ...(scale === undefined || isStatus ? [] : validateReplicas(object, scale.specReplicasPath)),
        ...(scale === undefined ? [] : validateReplicas(object, scale.statusReplicasPath)),
      ];
      // A write of the status too: a rule at the root reads both.
      return evaluateRules === undefined ? causes : [...causes, ...evaluateRules(object, old, causes)];
    },
  });
  return { ...served, singular: names.singular, listKind: names.listKind, custom };
}

/** A write of the status changes nothing else, the labels included. */
function withStatusOf(next: KubeObject, old: KubeObject): KubeObject {
  const { status: _status, ...kept } = old;
  const { status } = next;
  const { managedFields } = next.metadata;
  const { managedFields: _managedFields, ...metadata } = old.metadata;
  return {
    ...kept,
    metadata: { ...metadata, ...(managedFields === undefined ? {} : { managedFields }) },
    ...(status === undefined ? {} : { status }),
  } as KubeObject;
}

function validateReplicas(object: KubeObject, jsonPath: string): readonly Cause[] {
  const value = valueOfScale(jsonPath, object);
  if (typeof value !== 'number' || (value >= 0 && value <= INT32_MAX)) return [];
  const rule = value < 0 ? 'should be a non-negative integer' : `should be less than or equal to ${INT32_MAX}`;
  return [invalidValue(jsonPath, value, rule)];
}
