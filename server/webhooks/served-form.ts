/** The version of a kind in which a webhook receives a write, and what converts its objects. */

import type { AdmittedCall } from '../../shared/admission/admitted-write.ts';
import { type MatchedRequest, matchesRules } from '../../shared/admission/match.rule.ts';
import type { ResourceDescriptor } from '../../shared/kinds/descriptor.ts';
import { findResource } from '../../shared/kinds/registry.ts';
import { schemaFor } from '../../shared/kinds/schemas.ts';
import type { KubeObject, MutatingWebhook } from '../../shared/kinds/types.ts';
import { apiVersionOf } from '../../shared/kubernetes/normal-form.ts';
import { decodeObject } from '../../shared/kubernetes/request-body.ts';

export interface ServedForm {
  readonly kind: { readonly group: string; readonly version: string; readonly kind: string };
  readonly resource: { readonly group: string; readonly version: string; readonly resource: string };
  toForm(stored: KubeObject): KubeObject;
  /** Fields that the kind does not have are dropped. @throws StatusError for a field of the wrong type */
  fromForm(object: KubeObject): KubeObject;
}

interface Version {
  readonly group: string;
  readonly version: string;
}

/**
 * The version of the request if a rule names it. Otherwise the first equivalent one that a rule names.
 * undefined: the webhook is not for this write.
 */
export function servedForm(
  { rules = [], matchPolicy }: MutatingWebhook,
  call: AdmittedCall,
  request: MatchedRequest,
): ServedForm | undefined {
  const match = { resourceRules: rules, matchPolicy: 'Exact' };
  const candidates = matchPolicy === 'Exact' ? [request] : [request, ...request.equivalents];
  const found = candidates.find(({ group, version }) => matchesRules(match, { ...request, group, version }, false));
  return found && formOf(call, request, found);
}

function formOf(
  { descriptor, kind }: AdmittedCall,
  { resource }: MatchedRequest,
  { group, version }: Version,
): ServedForm {
  const names = { group, version, resource };
  // The body of a subresource has one version.
  if (kind !== undefined) return { kind, resource: names, toForm: (object) => object, fromForm: (object) => object };
  const { custom } = descriptor;
  const served = custom === undefined ? (findResource(group, version, resource) ?? descriptor) : descriptor;
  const asKind = { group, version, kind: served.kind };
  const decode = (value: KubeObject): KubeObject =>
    decodeObject(served, schemaFor(served), { value: value as never, duplicates: [] }, 'Ignore').object;
  if (custom !== undefined) {
    const as = (of: Version) => (object: KubeObject) => ({ ...object, apiVersion: apiVersionOf(of) });
    const own = as({ group, version: descriptor.version });
    return { kind: asKind, resource: names, toForm: as({ group, version }), fromForm: (object) => decode(own(object)) };
  }
  const { servedFrom }: ResourceDescriptor = served;
  return {
    kind: asKind,
    resource: names,
    toForm: (stored) => servedFrom?.toServed(stored) ?? stored,
    fromForm: (object) => servedFrom?.toStored(decode(object)) ?? decode(object),
  };
}
