/**
 * The values of `format` that texts are checked for. Others are accepted, as unknown ones are upstream.
 * Source: k8s.io/apiextensions-apiserver pkg/apiserver/validation/formats.go, kube-openapi pkg/validation/strfmt.
 */

import { parseRfc3339 } from '../../kubernetes/rfc3339.ts';
import { addressFamily } from '../../kubernetes/validate-addresses.ts';

type Test = (text: string) => boolean;

const uuid = (version: string, variant = '[0-9a-f]'): Test => {
  const pattern = new RegExp(
    `^[0-9a-f]{8}-?[0-9a-f]{4}-?${version}[0-9a-f]{3}-?${variant}[0-9a-f]{3}-?[0-9a-f]{12}$`,
    'i',
  );
  return (text) => pattern.test(text);
};

const matching =
  (pattern: RegExp): Test =>
  (text) =>
    pattern.test(text);

/** Without regard to case, both characters for micro are the same: they are one alternative. */
const DURATION_UNITS =
  'ns|us|[\u00b5\u03bc]s|ms|s|m|h|d|w|nanoseconds?|microseconds?|milliseconds?|seconds?|minutes?|hours?|days?|weeks?';

const isDateTime: Test = (text) => parseRfc3339(text.replace(' ', 'T')) !== undefined;

export const FORMATS: ReadonlyMap<string, Test> = new Map<string, Test>([
  ['date-time', isDateTime],
  ['datetime', isDateTime],
  ['date', (text) => /^\d{4}-\d\d-\d\d$/.test(text) && isDateTime(`${text}T00:00:00Z`)],
  ['duration', matching(new RegExp(`^(?:0|[-+]?(?:(?:\\d+(?:\\.\\d*)?|\\.\\d+) ?(?:${DURATION_UNITS}) ?)+)$`, 'i'))],
  ['byte', matching(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/)],
  ['ipv4', (text) => addressFamily(text, 'ip') === 'IPv4'],
  ['ipv6', (text) => addressFamily(text, 'ip') === 'IPv6'],
  ['cidr', (text) => addressFamily(text, 'cidr') !== undefined],
  ['mac', matching(/^(?:[0-9a-f]{2}([:-])(?:[0-9a-f]{2}\1){4}[0-9a-f]{2}|(?:[0-9a-f]{4}\.){2}[0-9a-f]{4})$/i)],
  ['uuid', uuid('[0-9a-f]')],
  ['uuid3', uuid('3')],
  ['uuid4', uuid('4', '[89ab]')],
  ['uuid5', uuid('5', '[89ab]')],
  ['uri', (text) => URL.canParse(text)],
  ['email', matching(/^[^\s@<>(),;:"[\]\\]+@[^\s@<>(),;:"[\]\\]+$/)],
  [
    'hostname',
    (text) =>
      text.length <= 255 &&
      text.split('.').every((part) => /^[\p{L}\p{N}]([\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?$/u.test(part)),
  ],
  ['hexcolor', matching(/^#?(?:[0-9a-f]{3}|[0-9a-f]{6})$/i)],
  ['bsonobjectid', matching(/^[0-9a-f]{24}$/i)],
]);
