/**
 * Admission policies and webhooks of the cluster, for one write: mutations before the object is validated, validations
 * before it is stored. Expressions and their language are loaded when a policy matches (docs/decisions).
 *
 * Sources: k8s.io/apiserver, pkg/admission/plugin/policy/{generic,validating,mutating}.
 *
 * Concurrency: a policy sees the object that the write reads and the one that it would store. A write that loses to
 * another one is admitted again with the newer object. Policies of a cluster change at any time; see policy-memory.ts.
 */

import { serviceAccountInfo } from '../access/account-name.ts';
import type { ReadDependencies } from '../api/call.ts';
import { defined } from '../defined.ts';
import { admissionKinds } from '../kinds/admission-policies/serve.ts';
import type { ResourceDescriptor } from '../kinds/descriptor.ts';
import { namespaces, resources, storedAs } from '../kinds/registry.ts';
import { schemaFor } from '../kinds/schemas.ts';
import type { KubeObject, MatchCondition, MatchResources } from '../kinds/types.ts';
import type { AccessAsked, AccessDecision } from '../kubernetes/cel/authorizer.ts';
import { jsonEqual } from '../kubernetes/json.ts';
import * as status from '../kubernetes/status.ts';
import type { AdmissionWebhooks, AdmittedCall, AdmittedWrite, Mutator } from './admitted-write.ts';
import type { CompiledPolicy } from './compile-policy.ts';
import type { Evaluator } from './evaluate.ts';
import {
  type AdmittedOperation,
  type MatchedRequest,
  matchesRules,
  matchesSelectors,
  readsNamespace,
} from './match.rule.ts';
import { bindingParams, type ParamDependencies } from './params.ts';
import type { AdmissionPolicies, MutatingHook, ValidatingHook, WebhookConfigurations } from './policy-memory.ts';

/** What policies and webhooks are found and evaluated with. */
export interface AdmissionDependencies extends ParamDependencies, Pick<ReadDependencies, 'authorizer' | 'log'> {
  /** Admission policies and configurations of webhooks, in memory. */
  readonly admissionPolicies: AdmissionPolicies;
  /** Calls admission webhooks. Absent: none are called. */
  readonly webhooks?: AdmissionWebhooks;
}

export interface WriteAdmission {
  /**
   * Throws the Status of a refusal that depends on the objects. `next`: the object to store, undefined for a deletion.
   * `stored`: the current object, undefined for a creation. Called before each attempt, dry runs included.
   */
  readonly admit: (next: KubeObject | undefined, stored: KubeObject | undefined) => Promise<void>;
  /**
   * Returns `next` as policies of the cluster change it. Called before the object is validated, with its defaults. The
   * same object: they do not.
   */
  readonly mutate: (next: KubeObject, stored: KubeObject | undefined) => Promise<KubeObject>;
}

export interface PolicyAdmission extends WriteAdmission {
  /** Of the last attempt, for the answer. */
  readonly warnings: () => readonly string[];
}

const exempt: ReadonlySet<ResourceDescriptor> = new Set(admissionKinds);

export function admitByPolicies(dependencies: AdmissionDependencies, call: AdmittedCall): PolicyAdmission {
  let ofMutation: string[] = [];
  let ofValidation: string[] = [];
  if (exempt.has(call.descriptor)) {
    return { admit: async () => {}, mutate: async (next) => next, warnings: () => [] };
  }
  const { admissionPolicies, webhooks } = dependencies;
  const configurations = async () => (webhooks === undefined ? NO_WEBHOOKS : admissionPolicies.webhooks(call.nowMs));
  return {
    async mutate(next, stored) {
      ofMutation = [];
      const [{ mutating }, called] = await Promise.all([admissionPolicies.hooks(call.nowMs), configurations()]);
      if (mutating.length === 0 && called.mutating.length === 0) return next;
      const { policyMutators, write, mutated } = admissionOf(dependencies, call, next, stored);
      const ofWebhooks = webhooks?.mutators(called.mutating, write(ofMutation, true)) ?? [];
      return mutated([...policyMutators(mutating), ...ofWebhooks], next);
    },
    async admit(next, stored) {
      ofValidation = [];
      const [{ validating }, called] = await Promise.all([admissionPolicies.hooks(call.nowMs), configurations()]);
      // Nothing else mutates these.
      const isUnchanging = next === undefined || call.kind !== undefined;
      const mutating = isUnchanging ? called.mutating : [];
      if (validating.length + called.validating.length + mutating.length === 0) return;
      const { validate, write } = admissionOf(dependencies, call, next, stored);
      const asked = write(ofValidation, false);
      for (const mutator of webhooks?.mutators(mutating, asked) ?? []) await mutator.run(next);
      if (validating.length > 0) ofValidation.push(...(await validate(validating)));
      if (called.validating.length > 0) await webhooks?.validate(called.validating, asked);
    },
    warnings: () => [...ofMutation, ...ofValidation],
  };
}

const NO_WEBHOOKS: WebhookConfigurations = { validating: [], mutating: [] };

function matchedRequest(
  { descriptor, target, operation }: AdmittedCall,
  object: KubeObject | undefined,
  oldObject: KubeObject | undefined,
): MatchedRequest {
  const stored = storedAs(descriptor);
  const served = resources.filter((each) => storedAs(each) === stored);
  const byObjects = object === undefined ? 'DELETE' : oldObject === undefined ? 'CREATE' : 'UPDATE';
  return {
    operation: operation ?? byObjects,
    group: target.group,
    version: target.version,
    resource: target.resource,
    subresource: target.subresource,
    equivalents: descriptor.custom
      ? descriptor.custom.versions.map((version) => ({ group: target.group, version }))
      : served.map(({ group, version }) => ({ group, version })),
    name: target.name === '' ? (object?.metadata.name ?? '') : target.name,
    namespace: descriptor.namespaced ? target.namespace : '',
    object,
    oldObject,
  };
}

function admissionOf(
  dependencies: AdmissionDependencies,
  call: AdmittedCall,
  object: KubeObject | undefined,
  oldObject: KubeObject | undefined,
) {
  const request = matchedRequest(call, object, oldObject);
  const { descriptor } = call;
  let namespace: Promise<KubeObject | undefined> | undefined;
  /** The namespace of the object; read for the first policy that is for this resource. */
  const namespaceOf = (): Promise<KubeObject | undefined> => {
    namespace ??=
      request.namespace === ''
        ? Promise.resolve(undefined)
        : dependencies.storageOf(namespaces).get('', request.namespace);
    return namespace;
  };

  async function namespaceLabels(): Promise<Readonly<Record<string, string>> | undefined> {
    if (descriptor === namespaces) return (object ?? oldObject)?.metadata.labels ?? {};
    if (request.namespace === '') return undefined;
    return (await namespaceOf())?.metadata.labels ?? {};
  }

  async function matches(match: MatchResources | undefined, forBinding: boolean): Promise<boolean> {
    if (match === undefined) return forBinding;
    if (!matchesRules(match, request, forBinding)) return false;
    const labels = readsNamespace(match) ? await namespaceLabels() : undefined;
    return matchesSelectors(match, request, labels);
  }

  /** Loads expressions. The evaluator is made once: its values and its budget are those of the request. */
  let loading:
    | Promise<{
        readonly evaluator: Evaluator;
        readonly compiledOnce: CompileOnce;
        readonly conditionsOnce: ConditionsOnce;
      }>
    | undefined;
  const evaluation = () => {
    loading ??= (async () => {
      const [{ evaluatorFor }, { compiledOnce, conditionsOnce }] = await Promise.all([
        import('./evaluate.ts'),
        import('./compile-policy.ts'),
      ]);
      const evaluator = evaluatorFor({
        object,
        oldObject,
        request: requestValue(call, request),
        namespaceObject: exposedNamespace(await namespaceOf()),
        requestResource: { ...request, group: request.group },
        findAccess: (asked) => findAccess(dependencies, call, asked),
      });
      return { evaluator, compiledOnce, conditionsOnce };
    })();
    return loading;
  };

  const paramsOf = bindingParams(dependencies, request.namespace);

  return {
    async validate(hooks: readonly ValidatingHook[]): Promise<readonly string[]> {
      const warnings: string[] = [];
      let denied: { readonly message: string; readonly reason: string } | undefined;
      for (const { policy, bindings } of hooks) {
        const { spec = {}, metadata } = policy;
        if (!(await matches(spec.matchConstraints, false))) continue;
        const policyName = metadata.name ?? '';
        const { evaluator, compiledOnce } = await evaluation();
        const compiled = compiledOnce(policy, false);
        for (const binding of bindings) {
          const { paramRef, matchResources, validationActions = [] } = binding.spec ?? {};
          if (!(await matches(matchResources, true))) continue;
          const of = `ValidatingAdmissionPolicy '${policyName}' with binding '${binding.metadata.name}'`;
          const refuse = (message: string, reason: string): void => {
            denied ??= { message: `${of} denied request: ${message}`, reason };
          };
          const params = await paramsOf(spec.paramKind, paramRef);
          if (typeof params === 'string') {
            if (spec.failurePolicy !== 'Ignore') refuse(`failed to configure binding: ${params}`, 'Invalid');
            continue;
          }
          for (const param of params) {
            const result = await evaluateValidation(evaluator, compiled, param);
            for (const { kind, message, reason } of result.decisions) {
              if (kind === 'failed' && spec.failurePolicy === 'Ignore') continue;
              if (validationActions.includes('Deny')) refuse(message, reason);
              if (validationActions.includes('Warn')) {
                warnings.push(`Validation failed for ${of}: ${message}`);
              }
              if (validationActions.includes('Audit')) record(dependencies, call, { policyName, message });
            }
            for (const { key, value } of result.auditAnnotations) {
              record(dependencies, call, { policyName, key, value: value.slice(0, AUDIT_VALUE_MAX) });
            }
          }
        }
      }
      if (denied === undefined) return warnings;
      throw status.refusedByPolicy(descriptor, request.name, denied.message, denied.reason);
    },

    policyMutators: (hooks: readonly MutatingHook[]): readonly Mutator[] =>
      hooks.map((hook) => ({
        reinvocationPolicy: hook.policy.spec?.reinvocationPolicy,
        run: async (current) => (current === undefined ? undefined : mutateByPolicy(hook, current)),
      })),

    /** @param warnings are added to it */
    write: (warnings: string[], keepsChanges: boolean): AdmittedWrite => ({
      call,
      request,
      value: requestValue(call, request),
      keepsChanges,
      namespaceLabels,
      async holds(webhook, current) {
        if ((webhook.matchConditions ?? []).length === 0) return true;
        const { evaluator, conditionsOnce } = await evaluation();
        const compiled = conditionsOnce(webhook);
        return compiled.causes[0]?.message ?? evaluator.holds(compiled, current);
      },
      warn: (text) => warnings.push(text),
      record: (fields) => record(dependencies, call, fields),
    }),

    /** The object after all mutations. Those with `IfNeeded` run a second time if a later one changed the object. */
    async mutated(mutators: readonly Mutator[], first: KubeObject): Promise<KubeObject> {
      let current = first;
      const seen = new Map<Mutator, KubeObject>();
      for (const mutator of mutators) {
        const ran = await mutator.run(current);
        if (ran === undefined) continue;
        current = ran;
        seen.set(mutator, ran);
      }
      for (const [mutator, after] of seen) {
        if (mutator.reinvocationPolicy !== 'IfNeeded' || jsonEqual(after, current)) continue;
        current = (await mutator.run(current)) ?? current;
      }
      return current;
    },
  };

  /** undefined: the policy is not for this request. */
  async function mutateByPolicy(hook: MutatingHook, before: KubeObject): Promise<KubeObject | undefined> {
    const { policy, bindings } = hook;
    const { spec = {}, metadata } = policy;
    // Upstream: a deletion is not mutated, and neither is a connection.
    if (request.operation === 'DELETE' || !(await matches(spec.matchConstraints, false))) return undefined;
    const [{ evaluator, compiledOnce }, { withConfiguration, withJsonPatch, MutationFault }] = await Promise.all([
      evaluation(),
      import('./mutation.rule.ts'),
    ]);
    const compiled = compiledOnce(policy, true);
    let current = before;
    for (const binding of bindings) {
      const { paramRef, matchResources } = binding.spec ?? {};
      if (!(await matches(matchResources, true))) continue;
      const refuse = (message: string): void => {
        if (spec.failurePolicy === 'Ignore') return;
        const of = `policy '${metadata.name}' with binding '${binding.metadata.name}'`;
        throw status.refusedByPolicy(descriptor, request.name, `${of} denied request: ${message}`, 'Invalid');
      };
      const params = await paramsOf(spec.paramKind, paramRef);
      if (typeof params === 'string') {
        refuse(`failed to configure binding: ${params}`);
        continue;
      }
      for (const param of params) {
        let next = current;
        try {
          const fault = await evaluator.mutate(compiled, param, current, (value, i) => {
            next =
              compiled.mutations[i]?.patchType === 'JSONPatch'
                ? withJsonPatch(next, value)
                : withConfiguration(schemaFor(storedAs(descriptor)), next, value);
            return next;
          });
          if (fault === undefined) current = next;
          else refuse(fault);
        } catch (error) {
          if (!(error instanceof MutationFault)) throw error;
          refuse(error.message);
        }
      }
    }
    return current;
  }
}

type ConditionsOnce = (webhook: { readonly matchConditions?: MatchCondition[] }) => CompiledPolicy;
type CompileOnce = (policy: { readonly spec?: object }, isMutating: boolean) => CompiledPolicy;

/** maxAuditAnnotationValueLength. */
const AUDIT_VALUE_MAX = 10 * 1_024;

/** A stored policy with faults was written by a version with other rules. It fails as its failurePolicy says. */
async function evaluateValidation(evaluator: Evaluator, compiled: CompiledPolicy, param: KubeObject | undefined) {
  const [cause] = compiled.causes;
  if (cause === undefined) return evaluator.validate(compiled, param);
  return { decisions: [{ kind: 'failed' as const, message: cause.message, reason: 'Invalid' }], auditAnnotations: [] };
}

/** Audit annotations, and failures of bindings with the action Audit: one line of the log each. */
function record({ log }: AdmissionDependencies, { descriptor, target, user }: AdmittedCall, fields: object): void {
  const { namespace, name } = target;
  log.info('admission policy audit', {
    ...fields,
    user: user.username,
    resource: descriptor.resource,
    namespace,
    name,
  });
}

/** The value of `request`: an AdmissionRequest without the objects. */
function requestValue(
  { descriptor, user, dryRun, kind, target, request: asked }: AdmittedCall,
  request: MatchedRequest,
): object {
  const { group, version, resource, subresource, name, namespace, operation } = request;
  const asKind = kind ?? { group: descriptor.group, version: descriptor.version, kind: descriptor.kind };
  const asResource = { group, version, resource };
  return {
    kind: asKind,
    resource: asResource,
    subResource: subresource,
    requestKind: asKind,
    requestResource: asResource,
    requestSubResource: subresource,
    name,
    namespace: namespace === '' && descriptor === namespaces ? target.name : namespace,
    operation,
    userInfo: {
      username: user.username,
      uid: user.uid ?? '',
      groups: user.groups,
      extra: user.extra ?? {},
    },
    dryRun,
    options: optionsValue(operation, asked.query, dryRun),
  };
}

const OPTIONS = { CREATE: 'CreateOptions', UPDATE: 'UpdateOptions', DELETE: 'DeleteOptions' };

/** The options of the request, as far as the query has them. A connection has none. */
function optionsValue(operation: AdmittedOperation, query: URLSearchParams, dryRun: boolean): object | null {
  if (operation === 'CONNECT') return null;
  return {
    kind: OPTIONS[operation],
    apiVersion: 'meta.k8s.io/v1',
    ...(dryRun && { dryRun: ['All'] }),
    ...defined({
      fieldManager: query.get('fieldManager') ?? undefined,
      fieldValidation: query.get('fieldValidation') ?? undefined,
    }),
  };
}

/** The parts of a Namespace that expressions may read. */
function exposedNamespace(namespace: KubeObject | undefined): KubeObject | undefined {
  if (namespace === undefined) return undefined;
  const { managedFields: _managedFields, ownerReferences: _owners, ...metadata } = namespace.metadata;
  const { spec, status: state } = namespace;
  return { metadata, ...(spec === undefined ? {} : { spec }), ...(state === undefined ? {} : { status: state }) };
}

async function findAccess(
  { authorizer }: AdmissionDependencies,
  { user, nowMs }: AdmittedCall,
  asked: AccessAsked,
): Promise<AccessDecision> {
  const { account } = asked;
  const subject = account === undefined ? user : serviceAccountInfo(account.namespace, account.name);
  const answer =
    asked.kind === 'path'
      ? await authorizer.authorizePath(subject, { verb: asked.verb, path: asked.path }, nowMs)
      : await authorizer.authorize(subject, asked, nowMs);
  return { allowed: answer.allowed, reason: answer.reason };
}
