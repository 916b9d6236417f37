/** The expressions of a policy, compiled: at its creation to find faults, and before the first request it is for. */

import { defined } from '../defined.ts';
import type { KubeMutatingAdmissionPolicy, KubeValidatingAdmissionPolicy } from '../kinds/types.ts';
import { invalidValue } from '../kubernetes/causes.ts';
import { AUTHORIZER_TYPE, RESOURCE_CHECK_TYPE } from '../kubernetes/cel/authorizer.ts';
import type { Environment, Fields } from '../kubernetes/cel/environment.ts';
import { celFunctions, compileExpression, mutationFunctions, type Program } from '../kubernetes/cel/expressions.ts';
import { BOOL, type CelType, DYN, listOf, NULL, objectType, readType, STRING } from '../kubernetes/cel/types.ts';
import type { Cause } from '../kubernetes/status.ts';

const REQUEST = 'kubernetes.AdmissionRequest';
const NAMESPACE = 'kubernetes.Namespace';
const VARIABLES = 'kubernetes.variables';
export const JSON_PATCH = 'JSONPatch';

/** Fields of the values that are not objects of the cluster (k8s.io/apiserver, pkg/admission/plugin/cel/compile.go). */
const FIELDS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  [REQUEST]: {
    kind: 'kubernetes.GroupVersionKind',
    resource: 'kubernetes.GroupVersionResource',
    subResource: 'string',
    requestKind: 'kubernetes.GroupVersionKind',
    requestResource: 'kubernetes.GroupVersionResource',
    requestSubResource: 'string',
    name: 'string',
    namespace: 'string',
    operation: 'string',
    userInfo: 'kubernetes.UserInfo',
    dryRun: 'bool',
    options: 'dyn',
  },
  'kubernetes.GroupVersionKind': { group: 'string', version: 'string', kind: 'string' },
  'kubernetes.GroupVersionResource': { group: 'string', version: 'string', resource: 'string' },
  'kubernetes.UserInfo': {
    username: 'string',
    uid: 'string',
    groups: 'list<string>',
    extra: 'map<string,list<string>>',
  },
  [NAMESPACE]: {
    metadata: 'kubernetes.NamespaceMetadata',
    spec: 'kubernetes.NamespaceSpec',
    status: 'kubernetes.NamespaceStatus',
  },
  'kubernetes.NamespaceMetadata': {
    name: 'string',
    generateName: 'string',
    namespace: 'string',
    labels: 'map<string,string>',
    annotations: 'map<string,string>',
    UID: 'string',
    creationTimestamp: 'dyn',
    deletionGracePeriodSeconds: 'int',
    deletionTimestamp: 'dyn',
    generation: 'int',
    resourceVersion: 'string',
    finalizers: 'list<string>',
  },
  'kubernetes.NamespaceSpec': { finalizers: 'list<string>' },
  'kubernetes.NamespaceStatus': { phase: 'string' },
  [JSON_PATCH]: { op: 'string', path: 'string', from: 'string', value: 'dyn' },
};

const FIXED = new Map(
  Object.entries(FIELDS).map(([type, fields]) => {
    const types = new Map(Object.entries(fields).map(([name, text]) => [name, readType(text)]));
    return [type, { typeOf: (field: string) => types.get(field) } satisfies Fields];
  }),
);
const AUTHORIZER_FIELDS: Fields = {
  typeOf: (field) => (field === 'requestResource' ? objectType(RESOURCE_CHECK_TYPE) : undefined),
};
/** Fields of `Object{}` are those of any kind: what is wrong in one is found when the object is made. */
const ANY_FIELDS: Fields = { typeOf: () => DYN };

const isObjectName = (name: string): boolean => name === 'Object' || name.startsWith('Object.');

export interface NamedProgram {
  readonly name: string;
  readonly expression: string;
  readonly program: Program;
}

/** Types of the objects that a policy reads. */
export interface PolicyTypes {
  readonly object: CelType;
  readonly params: CelType;
  readonly fieldsOf: Environment['fieldsOf'];
}

/** At an admission nothing is known of objects before there is one. */
const UNTYPED: PolicyTypes = { object: DYN, params: DYN, fieldsOf: () => undefined };

/** Why an expression cannot be used. */
export interface PolicyFault {
  readonly field: string;
  readonly expression: string;
  readonly message: string;
}

/** One that is not valid has no program; a policy with faults is not stored. */
export interface CompiledPolicy {
  readonly faults: readonly PolicyFault[];
  readonly causes: readonly Cause[];
  readonly conditions: readonly NamedProgram[];
  readonly variables: ReadonlyMap<string, NamedProgram>;
  readonly validations: readonly CompiledValidation[];
  readonly auditAnnotations: readonly NamedProgram[];
  readonly mutations: readonly CompiledMutation[];
}

export interface CompiledValidation extends NamedProgram {
  readonly message: string;
  readonly messageProgram?: Program;
  readonly reason: string;
}

export interface CompiledMutation extends NamedProgram {
  readonly patchType: 'ApplyConfiguration' | 'JSONPatch';
}

type Spec = NonNullable<KubeValidatingAdmissionPolicy['spec']> & NonNullable<KubeMutatingAdmissionPolicy['spec']>;

export function compilePolicy(spec: Partial<Spec>, isMutating: boolean, types = UNTYPED): CompiledPolicy {
  const faults: PolicyFault[] = [];
  const variableTypes = new Map<string, CelType>();
  const environment = (has: { readonly variables: boolean; readonly authorizer: boolean }): Environment => ({
    variables: new Map<string, CelType>([
      ['object', types.object],
      ['oldObject', types.object],
      ['request', objectType(REQUEST)],
      ['namespaceObject', objectType(NAMESPACE)],
      ...(spec.paramKind === undefined ? [] : [['params', types.params] as const]),
      ...(has.authorizer ? [['authorizer', objectType(AUTHORIZER_TYPE)] as const] : []),
      ...(has.variables ? [['variables', objectType(VARIABLES)] as const] : []),
    ]),
    functions: isMutating ? mutationFunctions : celFunctions,
    fieldsOf(type) {
      if (type === VARIABLES) return { typeOf: (field) => variableTypes.get(field) };
      if (type === AUTHORIZER_TYPE) return AUTHORIZER_FIELDS;
      return FIXED.get(type) ?? types.fieldsOf(type) ?? (isMutating && isObjectName(type) ? ANY_FIELDS : undefined);
    },
    isConstructible: (type) => isMutating && (isObjectName(type) || type === JSON_PATCH),
  });
  const whole = environment({ variables: true, authorizer: true });
  const withoutVariables = environment({ variables: false, authorizer: true });
  const ofMessages = environment({ variables: true, authorizer: false });

  function compiled(of: Environment, field: string, expression: string, results: readonly CelType[]) {
    const outcome = compileExpression(of, expression, results);
    if (outcome.kind === 'compiled') return [outcome.program];
    faults.push({ field, expression, message: outcome.message });
    return [];
  }

  const conditions = (spec.matchConditions ?? []).flatMap(({ name, expression }, i) =>
    compiled(withoutVariables, `spec.matchConditions[${i}].expression`, expression.trim(), [BOOL]).map((program) => ({
      name,
      expression,
      program,
    })),
  );
  const variables = new Map<string, NamedProgram>();
  for (const [i, { name, expression }] of (spec.variables ?? []).entries()) {
    for (const program of compiled(whole, `spec.variables[${i}].expression`, expression, [DYN])) {
      variableTypes.set(name, program.type);
      variables.set(name, { name, expression, program });
    }
  }
  const validations = (spec.validations ?? []).flatMap((validation, i): CompiledValidation[] => {
    const { expression, message = '', messageExpression = '', reason = 'Invalid' } = validation;
    const field = `spec.validations[${i}]`;
    const [program] = compiled(whole, `${field}.expression`, expression, [BOOL]);
    const [messageProgram] =
      messageExpression.trim() === ''
        ? []
        : compiled(ofMessages, `${field}.messageExpression`, messageExpression, [STRING]);
    if (program === undefined) return [];
    return [{ name: '', expression, program, message, reason, ...(messageProgram && { messageProgram }) }];
  });
  const auditAnnotations = (spec.auditAnnotations ?? []).flatMap(({ key, valueExpression }, i) =>
    compiled(whole, `spec.auditAnnotations[${i}].valueExpression`, valueExpression.trim(), [STRING, NULL]).map(
      (program) => ({ name: key, expression: valueExpression, program }),
    ),
  );
  const mutations = (spec.mutations ?? []).flatMap((mutation, i): CompiledMutation[] => {
    const isApply = mutation.patchType === 'ApplyConfiguration';
    const expression = (isApply ? mutation.applyConfiguration : mutation.jsonPatch)?.expression ?? '';
    const field = `spec.mutations[${i}].${isApply ? 'applyConfiguration' : 'jsonPatch'}.expression`;
    const result = isApply ? objectType('Object') : listOf(objectType(JSON_PATCH));
    const patchType = isApply ? ('ApplyConfiguration' as const) : ('JSONPatch' as const);
    return compiled(whole, field, expression, [result]).map((program) => ({
      name: '',
      expression,
      program,
      patchType,
    }));
  });
  const causes = faults.map(({ field, expression, message }) => invalidValue(field, expression, message));
  return { faults, causes, conditions, variables, validations, auditAnnotations, mutations };
}

/** The conditions of a webhook. @param field of the webhook */
export function compileConditions({ matchConditions }: Pick<Spec, 'matchConditions'>, field = ''): CompiledPolicy {
  const compiled = compilePolicy(defined({ matchConditions }), false);
  const causes = compiled.causes.map((cause) => ({ ...cause, field: cause.field?.replace('spec', field) ?? field }));
  return { ...compiled, causes };
}

/** The webhooks in memory are compiled once. */
export function conditionsOnce(webhook: Pick<Spec, 'matchConditions'>): CompiledPolicy {
  const known = programs.get(webhook);
  if (known !== undefined) return known;
  const made = compileConditions(webhook);
  programs.set(webhook, made);
  return made;
}

const programs = new WeakMap<object, CompiledPolicy>();

/** The policies in memory are compiled once. */
export function compiledOnce(policy: { readonly spec?: object }, isMutating: boolean): CompiledPolicy {
  const known = programs.get(policy);
  if (known !== undefined) return known;
  const made = compilePolicy(policy.spec ?? {}, isMutating);
  programs.set(policy, made);
  return made;
}
