/**
 * Decides whether a user may do something: by the built-in rules, then by roles and bindings. Requests, reviews,
 * impersonation and the check of escalation use it.
 *
 * Cost: nothing for what a built-in rule allows; otherwise that of policy-cache.ts.
 */

import { decideByRbac, faultsText, rulesGranted } from '../kinds/roles/grants.ts';
import type { RuleRequest } from '../kinds/roles/policy-rule.ts';
import type { PolicyRule } from '../kinds/types.ts';
import {
  type AccessAnswer,
  type AccessQuestion,
  type AccessRule,
  authorize,
  authorizePath,
  pathRulesFor,
  rulesFor,
  rulesToGrant,
} from './authorize.ts';
import type { NodeGraph } from './node-graph.ts';
import { CHECK_MS, type Policies, RECHECK_MS } from './policy-cache.ts';
import type { UserInfo } from './user-info.ts';

/** A request for a resource. */
export interface ResourceQuestion extends AccessQuestion {
  /** The query of the request, for a node that reads an object by its name in a selector. */
  readonly query?: URLSearchParams;
}

export interface PathQuestion {
  readonly verb: string;
  readonly path: string;
}

export interface UserRules {
  readonly resourceRules: readonly AccessRule[];
  readonly nonResourceRules: readonly { verbs: readonly string[]; nonResourceURLs: readonly string[] }[];
  /** Why rules may be missing; '' if none are. */
  readonly fault: string;
}

export interface Authorizer {
  /** @param ageMaxMs age of the roles and bindings that is accepted; absent: CHECK_MS */
  authorize(user: UserInfo, question: ResourceQuestion, nowMs: number, ageMaxMs?: number): Promise<AccessAnswer>;
  authorizePath(user: UserInfo, question: PathQuestion, nowMs: number): Promise<AccessAnswer>;
  /** The rules of a user in a namespace, for `kubectl auth can-i --list`. */
  rulesOf(user: UserInfo, namespace: string, nowMs: number): Promise<UserRules>;
  /** The rules that a user holds without further limit, and may therefore grant to others. */
  rulesHeld(user: UserInfo, namespace: string, nowMs: number): Promise<{ rules: PolicyRule[]; faults: string[] }>;
  /** The rules of a role. undefined: there is no such role. @param namespace that of the binding, '' for the cluster */
  rulesOfRole(
    role: { readonly kind: 'Role' | 'ClusterRole'; readonly name: string },
    namespace: string,
    nowMs: number,
  ): Promise<readonly PolicyRule[] | undefined>;
}

export interface AuthorizerOptions {
  readonly policies: Policies;
  readonly nodeGraph: NodeGraph;
  /** Rules of the group nodekeeper:viewers. */
  readonly viewerRules: readonly AccessRule[];
}

export function authorizer({ policies, nodeGraph, viewerRules }: AuthorizerOptions): Authorizer {
  /** A refusal is checked again with newer policies: a user who was just granted a role expects to use it. */
  async function byRbac(
    user: UserInfo,
    request: RuleRequest,
    namespace: string,
    { nowMs, ageMaxMs = CHECK_MS }: { readonly nowMs: number; readonly ageMaxMs?: number | undefined },
  ): Promise<AccessAnswer> {
    const answer = decideByRbac(user, request, await policies.view(namespace, { nowMs, ageMaxMs }));
    if (answer.allowed || policies.isFresh({ nowMs, ageMaxMs: RECHECK_MS })) return answer;
    return decideByRbac(user, request, await policies.view(namespace, { nowMs, ageMaxMs: RECHECK_MS }));
  }

  return {
    async authorize(user, question, nowMs, ageMaxMs) {
      const builtIn = authorize(user, question);
      const { verb, group, resource, subresource, namespace, name } = question;
      const why = builtIn.allowed
        ? await nodeGraph.refusal({ user, verb, target: question, query: question.query, nowMs })
        : builtIn.reason;
      if (why === undefined) return builtIn;
      const answer = await byRbac(user, { verb, group, resource, subresource, name }, namespace, { nowMs, ageMaxMs });
      if (answer.allowed) return answer;
      // Upstream also asks its authorizers one after the other.
      return { allowed: false, reason: [why, answer.reason].filter((reason) => reason !== '').join('\n') };
    },

    async authorizePath(user, question, nowMs) {
      const builtIn = authorizePath(user, question);
      return builtIn.allowed ? builtIn : byRbac(user, question, '', { nowMs });
    },

    async rulesOf(user, namespace, nowMs) {
      const granted = rulesGranted(user, await policies.view(namespace, { nowMs, ageMaxMs: RECHECK_MS }));
      const ofResources = granted.rules.filter(({ resources = [] }) => resources.length > 0);
      const ofPaths = granted.rules.filter(({ nonResourceURLs = [] }) => nonResourceURLs.length > 0);
      return {
        resourceRules: distinct([...rulesFor(user, viewerRules), ...ofResources.map(resourceRule)]),
        nonResourceRules: distinct([
          ...pathRulesFor(user),
          ...ofPaths.map(({ verbs = [], nonResourceURLs = [] }) => ({ verbs, nonResourceURLs })),
        ]),
        fault: granted.faults.length === 0 ? '' : faultsText(granted.faults),
      };
    },

    async rulesHeld(user, namespace, nowMs) {
      const granted = rulesGranted(user, await policies.view(namespace, { nowMs, ageMaxMs: RECHECK_MS }));
      const builtIn: readonly PolicyRule[] = [...rulesToGrant(user, viewerRules), ...pathRulesFor(user)];
      return { rules: [...builtIn, ...granted.rules], faults: granted.faults };
    },

    async rulesOfRole({ kind, name }, namespace, nowMs) {
      return (await policies.view(namespace, { nowMs, ageMaxMs: RECHECK_MS })).rulesOf(kind, name);
    },
  };
}

const resourceRule = ({ verbs = [], apiGroups = [], resources = [], resourceNames = [] }: PolicyRule): AccessRule => ({
  verbs,
  apiGroups,
  resources,
  ...(resourceNames.length === 0 ? {} : { resourceNames }),
});

/** A built-in rule and a default binding may grant the same. */
function distinct<T>(rules: readonly T[]): readonly T[] {
  return [...new Map(rules.map((rule) => [JSON.stringify(rule), rule])).values()];
}
