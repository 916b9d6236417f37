/** `authorizer` of Kubernetes: an expression asks what the user may do (k8s.io/apiserver, pkg/cel/library/authz.go). */

import { labelErrors, subdomainErrors } from '../validate-metadata.ts';
import { type Declaration, declare } from './functions.ts';
import { CelLazyFields } from './interpret.ts';
import { CelFailure, CelOpaque, type CelValue, sizeOf } from './values.ts';

/** What an expression asks. */
export type AccessAsked =
  | { readonly kind: 'path'; readonly account?: AccountName; readonly path: string; readonly verb: string }
  | ({ readonly kind: 'resource'; readonly account?: AccountName; readonly verb: string } & ResourceAsked);

/** The ServiceAccount asked about. Absent: the user of the request. */
export interface AccountName {
  readonly namespace: string;
  readonly name: string;
}

export interface ResourceAsked {
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
}

export interface AccessDecision {
  readonly allowed: boolean;
  readonly reason: string;
}

/** Answers from what is known. @throws AccessUnknown when it must be found out first */
export type AskAccess = (asked: AccessAsked) => AccessDecision;

/** The evaluation starts again when the answer is known. */
export class AccessUnknown extends Error {
  readonly asked: AccessAsked;
  constructor(asked: AccessAsked) {
    super('an expression asks for access that is not known yet');
    this.asked = asked;
  }
}

const AUTHORIZER = 'kubernetes.authorization.Authorizer';
const PATH_CHECK = 'kubernetes.authorization.PathCheck';
const GROUP_CHECK = 'kubernetes.authorization.GroupCheck';
const RESOURCE_CHECK = 'kubernetes.authorization.ResourceCheck';
const DECISION = 'kubernetes.authorization.Decision';

export const AUTHORIZER_TYPE = AUTHORIZER;
export const RESOURCE_CHECK_TYPE = RESOURCE_CHECK;

/** Questions and answers have no equality of their own. */
abstract class Identity extends CelOpaque {
  equals(other: CelOpaque): boolean {
    return this === other;
  }
}

/** Its field `requestResource` is a question about the resource of the request. */
export class CelAuthorizer extends CelLazyFields {
  readonly typeName = AUTHORIZER;
  readonly ask: AskAccess;
  readonly account: AccountName | undefined;
  readonly requestResource: ResourceAsked | undefined;
  constructor(
    ask: AskAccess,
    options: { readonly account?: AccountName; readonly requestResource?: ResourceAsked } = {},
  ) {
    super();
    this.ask = ask;
    this.account = options.account;
    this.requestResource = options.requestResource;
  }
  read(field: string): CelValue | undefined {
    if (field !== 'requestResource' || this.requestResource === undefined) return undefined;
    return new ResourceCheck(this, this.requestResource);
  }
}

class PathCheck extends Identity {
  readonly typeName = PATH_CHECK;
  readonly of: CelAuthorizer;
  readonly path: string;
  constructor(of: CelAuthorizer, path: string) {
    super();
    this.of = of;
    this.path = path;
  }
}

class GroupCheck extends Identity {
  readonly typeName = GROUP_CHECK;
  readonly of: CelAuthorizer;
  readonly group: string;
  constructor(of: CelAuthorizer, group: string) {
    super();
    this.of = of;
    this.group = group;
  }
}

class ResourceCheck extends Identity {
  readonly typeName = RESOURCE_CHECK;
  readonly of: CelAuthorizer;
  readonly asked: ResourceAsked;
  constructor(of: CelAuthorizer, asked: ResourceAsked) {
    super();
    this.of = of;
    this.asked = asked;
  }
}

class Decision extends Identity {
  readonly typeName = DECISION;
  readonly decision: AccessDecision;
  constructor(decision: AccessDecision) {
    super();
    this.decision = decision;
  }
}

const withAccount = ({ account }: CelAuthorizer): { readonly account?: AccountName } =>
  account === undefined ? {} : { account };

function pathCheck(of: CelAuthorizer, path: string): CelValue {
  return path === '' ? new CelFailure('path must not be empty') : new PathCheck(of, path);
}

function serviceAccount(of: CelAuthorizer, namespace: string, name: string): CelValue {
  if (subdomainErrors(name).length > 0) return new CelFailure('Invalid service account name');
  if (labelErrors(namespace).length > 0) return new CelFailure('Invalid service account namespace');
  return new CelAuthorizer(of.ask, { account: { namespace, name } });
}

const EVERYTHING = { subresource: '', namespace: '', name: '' };

const narrowed = (member: 'subresource' | 'namespace' | 'name') => (check: ResourceCheck, value: string) =>
  new ResourceCheck(check.of, { ...check.asked, [member]: value });

/** Roles grant no less to a request with a selector, so it does not narrow the question. */
const selected = (check: ResourceCheck): ResourceCheck => check;

/** A requirement of a selector is assumed to have two characters. */
const selectorCost = ([, selector = '']: readonly CelValue[]): number => {
  const length = sizeOf(selector);
  return 10 + Math.ceil(length * 0.1) + Math.ceil(Math.ceil(length * 0.5) * 50);
};

/** Two checks per expression, at most. */
const CHECK_COST = 350_000;
const checkCost = (_: readonly CelValue[]): number => CHECK_COST;

export const authorizerFunctions: readonly Declaration[] = [
  declare('.path', `${AUTHORIZER},string -> ${PATH_CHECK}`, pathCheck),
  declare(
    '.group',
    `${AUTHORIZER},string -> ${GROUP_CHECK}`,
    (of: CelAuthorizer, group: string) => new GroupCheck(of, group),
  ),
  declare('.serviceAccount', `${AUTHORIZER},string,string -> ${AUTHORIZER}`, serviceAccount),
  declare(
    '.resource',
    `${GROUP_CHECK},string -> ${RESOURCE_CHECK}`,
    ({ of, group }: GroupCheck, resource: string) => new ResourceCheck(of, { group, resource, ...EVERYTHING }),
  ),
  declare('.subresource', `${RESOURCE_CHECK},string -> ${RESOURCE_CHECK}`, narrowed('subresource')),
  declare('.namespace', `${RESOURCE_CHECK},string -> ${RESOURCE_CHECK}`, narrowed('namespace')),
  declare('.name', `${RESOURCE_CHECK},string -> ${RESOURCE_CHECK}`, narrowed('name')),
  declare('.fieldSelector', `${RESOURCE_CHECK},string -> ${RESOURCE_CHECK}`, selected, selectorCost),
  declare('.labelSelector', `${RESOURCE_CHECK},string -> ${RESOURCE_CHECK}`, selected, selectorCost),
  declare(
    '.check',
    `${PATH_CHECK},string -> ${DECISION}`,
    ({ of, path }: PathCheck, verb: string) => new Decision(of.ask({ kind: 'path', ...withAccount(of), path, verb })),
    checkCost,
  ),
  declare(
    '.check',
    `${RESOURCE_CHECK},string -> ${DECISION}`,
    ({ of, asked }: ResourceCheck, verb: string) =>
      new Decision(of.ask({ kind: 'resource', ...withAccount(of), ...asked, verb })),
    checkCost,
  ),
  declare('.allowed', `${DECISION} -> bool`, ({ decision }: Decision) => decision.allowed),
  declare('.reason', `${DECISION} -> string`, ({ decision }: Decision) => decision.reason),
  declare('.errored', `${DECISION} -> bool`, () => false),
  declare('.error', `${DECISION} -> string`, () => ''),
];
