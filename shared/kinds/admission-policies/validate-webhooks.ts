/**
 * Webhooks of a configuration (pkg/apis/admissionregistration/validation, k8s.io/apiserver pkg/util/webhook). It is
 * loaded when a configuration is written: few processes ever write one.
 */

import { duplicate, invalidValue, notSupported, required } from '../../kubernetes/causes.ts';
import { validateSelector } from '../../kubernetes/selectors.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { dns1035LabelErrors, subdomainErrors } from '../../kubernetes/validate-metadata.ts';
import type { MutatingWebhook, ServiceReference, WebhookClientConfig } from '../types.ts';
import {
  FAILURE_POLICIES,
  MATCH_POLICIES,
  REINVOCATION_POLICIES,
  validateConditionNames,
  validateRule,
} from './validate.ts';

/** Those that change nothing during a dry run. Others had to be named before v1. */
const SIDE_EFFECTS = ['None', 'NoneOnDryRun'];
const TIMEOUT_SECONDS_MAX = 30;
/** v1beta1 has no server that needs it: a list must name v1. */
const REVIEW_VERSION = 'v1';

const supported = (field: string, value: string | undefined, values: readonly string[]): Cause[] =>
  value === undefined || values.includes(value) ? [] : [notSupported(field, value, values.toSorted())];

/** @param webhooks those of a validating configuration have no reinvocationPolicy */
export function validateWebhooks(webhooks: readonly MutatingWebhook[]): Cause[] {
  const names = webhooks.map(({ name = '' }) => name);
  return webhooks.flatMap((webhook, i) => {
    const field = `webhooks[${i}]`;
    const { name = '', reinvocationPolicy } = webhook;
    return [
      ...validateWebhook(webhook, field),
      ...supported(`${field}.reinvocationPolicy`, reinvocationPolicy, REINVOCATION_POLICIES),
      ...(name !== '' && names.indexOf(name) < i ? [duplicate(`${field}.name`, name)] : []),
    ];
  });
}

function validateWebhook(webhook: MutatingWebhook, field: string): Cause[] {
  const { name = '', rules = [], failurePolicy, matchPolicy, sideEffects, timeoutSeconds = 1 } = webhook;
  const timeoutField = `${field}.timeoutSeconds`;
  return [
    ...validateName(name, `${field}.name`),
    ...rules.flatMap((rule, i) => validateRule(rule, `${field}.rules[${i}]`)),
    ...supported(`${field}.failurePolicy`, failurePolicy, FAILURE_POLICIES),
    ...supported(`${field}.matchPolicy`, matchPolicy, MATCH_POLICIES),
    ...(sideEffects === undefined
      ? [required(`${field}.sideEffects`, `must specify one of ${SIDE_EFFECTS.join(', ')}`)]
      : supported(`${field}.sideEffects`, sideEffects, SIDE_EFFECTS)),
    ...(timeoutSeconds >= 1 && timeoutSeconds <= TIMEOUT_SECONDS_MAX
      ? []
      : [invalidValue(timeoutField, timeoutSeconds, 'the timeout value must be between 1 and 30 seconds')]),
    ...validateSelector(webhook.namespaceSelector, `${field}.namespaceSelector`),
    ...validateSelector(webhook.objectSelector, `${field}.objectSelector`),
    ...validateClient(webhook.clientConfig ?? {}, `${field}.clientConfig`),
    ...validateConditionNames(webhook.matchConditions ?? [], `${field}.matchConditions`),
    ...validateVersions(webhook.admissionReviewVersions ?? [], `${field}.admissionReviewVersions`),
  ];
}

function validateName(name: string, field: string): Cause[] {
  if (name === '') return [required(field)];
  const errors = subdomainErrors(name);
  if (errors.length > 0) return [invalidValue(field, name, errors.join(','))];
  if (name.split('.').length >= 3) return [];
  return [invalidValue(field, name, 'should be a domain with at least three segments separated by dots')];
}

function validateClient({ url, service }: Partial<WebhookClientConfig>, field: string): Cause[] {
  if ((url === undefined) === (service === undefined)) {
    return [required(field, 'exactly one of url or service is required')];
  }
  return service === undefined ? validateUrl(url ?? '', `${field}.url`) : validateService(service, `${field}.service`);
}

const FORM = '; desired format: https://host[/path]';

function validateUrl(text: string, field: string): Cause[] {
  const url = URL.parse(text);
  if (url === null) return [required(field, `url must be a valid URL: ${JSON.stringify(text)}${FORM}`)];
  const user = url.password === '' ? url.username : `${url.username}:${url.password}`;
  return [
    ...(url.protocol === 'https:'
      ? []
      : [invalidValue(field, url.protocol.slice(0, -1), `'https' is the only allowed URL scheme${FORM}`)]),
    ...(url.host === '' ? [invalidValue(field, url.host, `host must be provided${FORM}`)] : []),
    ...(user === '' ? [] : [invalidValue(field, user, 'user information is not permitted in the URL')]),
    ...(url.hash === '' ? [] : [invalidValue(field, url.hash.slice(1), 'fragments are not permitted in the URL')]),
    ...(url.search === ''
      ? []
      : [invalidValue(field, url.search.slice(1), 'query parameters are not permitted in the URL')]),
  ];
}

function validateService({ name = '', namespace = '', port = 0, path = '' }: ServiceReference, field: string): Cause[] {
  return [
    ...(name === '' ? [required(`${field}.name`, 'service name is required')] : []),
    ...(namespace === '' ? [required(`${field}.namespace`, 'service namespace is required')] : []),
    ...(port >= 1 && port <= 65_535
      ? []
      : [invalidValue(`${field}.port`, port, 'port is not valid: must be between 1 and 65535, inclusive')]),
    ...validatePath(path, `${field}.path`),
  ];
}

function validatePath(path: string, field: string): Cause[] {
  if (path === '' || path === '/') return [];
  if (path === '//') return [invalidValue(field, path, 'segment[0] may not be empty')];
  const steps = path.slice(1).replace(/\/$/, '').split('/');
  return [
    ...(path.startsWith('/') ? [] : [invalidValue(field, path, "must start with a '/'")]),
    ...steps.flatMap((step, i) =>
      step === ''
        ? [invalidValue(field, path, `segment[${i}] may not be empty`)]
        : subdomainErrors(step).map((error) => invalidValue(field, path, `segment[${i}]: ${error}`)),
    ),
  ];
}

function validateVersions(versions: readonly string[], field: string): Cause[] {
  if (versions.length === 0) return [required(field, `must specify one of ${REVIEW_VERSION}`)];
  return [
    ...versions.flatMap((version, i) =>
      versions.indexOf(version) < i
        ? [invalidValue(`${field}[${i}]`, version, 'duplicate version')]
        : dns1035LabelErrors(version).map((error) => invalidValue(`${field}[${i}]`, version, error)),
    ),
    ...(versions.includes(REVIEW_VERSION)
      ? []
      : [invalidValue(field, versions, `must include at least one of ${REVIEW_VERSION}`)]),
  ];
}
