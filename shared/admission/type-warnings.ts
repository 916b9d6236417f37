/**
 * What is wrong in the expressions of a ValidatingAdmissionPolicy for the kinds that it names. A policy is stored all
 * the same: at an admission nothing is known of an object before there is one.
 *
 * Texts, numbers and booleans have their type. Values that the schema says nothing of, and those that expressions see
 * as other than it says (times, bytes, quantities), are dyn: nothing is found in them, and no warning is wrong.
 *
 * Source: k8s.io/apiserver pkg/admission/plugin/policy/validating/typechecking.go.
 */

import type { ReadDependencies } from '../api/call.ts';
import type { ResourceDescriptor } from '../kinds/descriptor.ts';
import type { KubeObject, KubeValidatingAdmissionPolicy, MatchResources, ParamKind } from '../kinds/types.ts';
import type { Fields } from '../kubernetes/cel/environment.ts';
import { BOOL, type CelType, DOUBLE, DYN, INT, listOf, mapOf, objectType, STRING } from '../kubernetes/cel/types.ts';
import type { GroupVersionKind, Schema, StructSchema } from '../kubernetes/schema.ts';
import { compilePolicy } from './compile-policy.ts';

/** Kinds of one policy that are checked. Upstream counts those of each rule. */
const KINDS_MAX = 10;
/** Characters of expressions that are checked, counted for each kind: 0.2 s of CPU. */
const CHECKED_CHARACTERS_MAX = 200_000;
/** JSON of all warnings of one policy, UTF-16 units. */
const WARNINGS_TEXT_MAX = 20_000;
/** Resources of one policy that are looked for: each may cost a read. */
const RESOURCES_MAX = 100;

type Spec = NonNullable<KubeValidatingAdmissionPolicy['spec']>;
type Warnings = NonNullable<
  NonNullable<NonNullable<KubeValidatingAdmissionPolicy['status']>['typeChecking']>['expressionWarnings']
>;

interface NamedResource {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
}

/** The resources that a policy names, without those of rules with wildcards, and subresources. */
function resourcesNamed({ resourceRules = [] }: MatchResources): readonly NamedResource[] {
  const found: NamedResource[] = [];
  for (const { apiGroups = [], apiVersions = [], resources = [] } of resourceRules) {
    if ([...apiGroups, ...apiVersions].some((name) => name.includes('*'))) continue;
    const named = resources.filter((name) => !/[*/]/.test(name)).toSorted();
    for (const group of apiGroups.toSorted()) {
      for (const version of apiVersions.toSorted()) {
        for (const resource of named) {
          if (found.length === RESOURCES_MAX) return found;
          found.push({ group, version, resource });
        }
      }
    }
  }
  return found;
}

interface TypedKind extends GroupVersionKind {
  readonly schema: StructSchema;
}

/** How kinds and their schemas are found. This module is loaded for a policy, and imports nothing of the API. */
export interface KnownKinds {
  readonly descriptorOf: ReadDependencies['descriptorOf'];
  /** undefined: it is not served, or its objects cannot be parameters. */
  readonly paramKindOf: (paramKind: ParamKind) => Promise<ResourceDescriptor | undefined>;
  readonly schemaOf: (descriptor: ResourceDescriptor) => StructSchema | undefined;
  /** JSON of an object, UTF-16 units. */
  readonly objectTextMax: number;
}

/** JSON of a status without warnings. UTF-16 units. */
const STATUS_TEXT = 200;

/**
 * A policy to store with what is wrong for the kinds that it names, as of this write. That depends on the spec and on
 * schemas alone: a write that is tried again finds the same, and nothing has to run later. A kind that a definition
 * adds afterwards is checked with the next change of the spec, as by upstream's controller.
 */
export async function withTypeChecking(policy: KubeValidatingAdmissionPolicy, known: KnownKinds): Promise<KubeObject> {
  const { metadata, spec = {}, status: was } = policy;
  if (metadata.generation === was?.observedGeneration) return policy;
  const typed = new Map<string, TypedKind>();
  for (const { group, version, resource } of resourcesNamed(spec.matchConstraints ?? {})) {
    if (typed.size === KINDS_MAX) break;
    const descriptor = await known.descriptorOf(group, version, resource);
    const schema = descriptor && known.schemaOf(descriptor);
    if (schema) typed.set(`${group}/${version}/${resource}`, { group, version, kind: descriptor.kind, schema });
  }
  const params = spec.paramKind && (await known.paramKindOf(spec.paramKind));
  const textMax = known.objectTextMax - JSON.stringify(policy).length - STATUS_TEXT;
  const expressionWarnings = typeWarnings(spec, [...typed.values()], params && known.schemaOf(params), textMax);
  const typeChecking = expressionWarnings.length === 0 ? {} : { expressionWarnings };
  return { ...policy, status: { ...was, observedGeneration: metadata.generation, typeChecking } };
}

/**
 * @param params undefined: nothing is known of the parameters
 * @param textMax of the warnings. The last one is cut, and others are left out: an object has a largest size
 */
function typeWarnings(
  spec: Spec,
  kinds: readonly TypedKind[],
  params: StructSchema | undefined,
  textMax: number,
): Warnings {
  const { paramKind, variables = [], validations = [] } = spec;
  const texts = new Map<string, string[]>();
  const countMax = Math.ceil(CHECKED_CHARACTERS_MAX / (JSON.stringify([variables, validations]).length + 1));
  for (const kind of kinds.toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1)).slice(0, countMax)) {
    const types = schemaTypes();
    const object = types.of(kind.schema);
    const typed = { object, params: params === undefined ? DYN : types.of(params), fieldsOf: types.fieldsOf };
    const { faults } = compilePolicy({ variables, validations, ...(paramKind && { paramKind }) }, false, typed);
    for (const { field, message } of faults) {
      const issues = /^compilation failed: (.*)$/s.exec(message)?.[1];
      if (issues !== undefined) texts.set(field, [...(texts.get(field) ?? []), `${nameOf(kind)}: ${issues}\n`]);
    }
  }
  let left = Math.min(textMax, WARNINGS_TEXT_MAX);
  return validations
    .flatMap((_, i) => ['expression', 'messageExpression'].map((member) => `spec.validations[${i}].${member}`))
    .flatMap((fieldRef) => {
      const found = texts.get(fieldRef);
      // JSON has two characters for a new line or quotation mark.
      const warning = found?.join('\n').slice(0, Math.max(0, Math.floor(left / 2) - 100)) ?? '';
      left -= warning === '' ? 0 : JSON.stringify({ fieldRef, warning }).length + 1;
      return warning === '' ? [] : [{ fieldRef, warning }];
    });
}

const nameOf = ({ group, version, kind }: GroupVersionKind): string => `${group}/${version}, Kind=${kind}`;

/** Types of values by their schemas. Each struct is one type, which may contain itself. */
function schemaTypes() {
  const structs = new Map<string, StructSchema>();
  function of(schema: Schema): CelType {
    switch (schema.kind) {
      case 'struct':
        structs.set(schema.name, schema);
        return objectType(schema.name);
      case 'list':
        return listOf(of(schema.items));
      case 'map':
        // A map of itself stands for any JSON.
        return schema.values === schema ? DYN : mapOf(STRING, of(schema.values));
      default:
        return schema.format === 'byte' ? DYN : (SCALARS.get(schema.kind) ?? DYN);
    }
  }
  return {
    of,
    fieldsOf(name: string): Fields | undefined {
      const struct = structs.get(name);
      if (struct === undefined) return undefined;
      const { fields, others } = struct;
      return {
        typeOf: (field) => (Object.hasOwn(fields, field) ? of(fields[field]!.schema) : others && of(others)),
      };
    },
  };
}

const SCALARS = new Map<Schema['kind'], CelType>([
  ['string', STRING],
  ['boolean', BOOL],
  ['integer', INT],
  ['number', DOUBLE],
]);
