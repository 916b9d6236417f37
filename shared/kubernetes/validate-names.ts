/**
 * Rules for names, labels and similar texts. Every function returns the error messages, none if the text is valid
 * (staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go).
 */
import { PROBE_LEASE } from '../access/probe-identity.ts';
import { utf8Bytes } from '../text.ts';
import { NAME_LENGTH_MAX } from './kubernetes.ts';

const LABEL_FORMAT = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const SUBDOMAIN_FORMAT = '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*';
const QUALIFIED_FORMAT = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const LABEL_VALUE_FORMAT = `(${QUALIFIED_FORMAT})?`;
const ENV_VAR_FORMAT = '[-._a-zA-Z][-._a-zA-Z0-9]*';

// The formats above are only quoted in messages. These match the same texts without nested repetition, which would
// make a long input expensive.
const label = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
const qualifiedPart = /^(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const envVar = /^[-._a-zA-Z][-._a-zA-Z0-9]*$/;

const LABEL_TEXT =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
const SUBDOMAIN_TEXT =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
const QUALIFIED_TEXT =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const LABEL_VALUE_TEXT = `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character`;

const DNS_LABEL_MAX = 63;
const QUALIFIED_NAME_MAX = 63;
const LABEL_VALUE_MAX = 63;
const PORT_NAME_MAX = 15;

/** Length in UTF-8 bytes. Kubernetes counts lengths in bytes. */
export const byteLength = utf8Bytes;

export const tooLongText = (max: number): string => `must be no more than ${max} characters`;

export function formatText(text: string, format: string, ...examples: readonly string[]): string {
  if (examples.length === 0) return `${text} (regex used for validation is '${format}')`;
  const shownExamples = examples.map((example) => `'${example}', `).join(' or ');
  return `${text} (e.g. ${shownExamples}regex used for validation is '${format}')`;
}

/** DNS-1123 label: 1 to 63 characters without dots. Namespaces, container and volume names. */
export function labelErrors(value: string): string[] {
  const errors: string[] = [];
  if (byteLength(value) > DNS_LABEL_MAX) errors.push(tooLongText(DNS_LABEL_MAX));
  if (!label.test(value)) errors.push(formatText(LABEL_TEXT, LABEL_FORMAT, 'my-name', '123-abc'));
  return errors;
}

const DNS_1035_TEXT = formatText(
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  '[a-z]([-a-z0-9]*[a-z0-9])?',
  'my-name',
  'abc-123',
);

/** DNS-1035 label: a label that starts with a letter. Services, and the names of custom resources. */
export function dns1035LabelErrors(value: string): string[] {
  const errors: string[] = [];
  if (byteLength(value) > DNS_LABEL_MAX) errors.push(tooLongText(DNS_LABEL_MAX));
  if (!/^[a-z](?:[-a-z0-9]*[a-z0-9])?$/.test(value)) errors.push(DNS_1035_TEXT);
  return errors;
}

/** DNS-1123 subdomain: 1 to 253 characters; a dot-separated part may have any length. Most object names. */
export function subdomainErrors(value: string): string[] {
  const errors: string[] = [];
  if (byteLength(value) > NAME_LENGTH_MAX) errors.push(tooLongText(NAME_LENGTH_MAX));
  if (!value.split('.').every((part) => label.test(part))) {
    errors.push(formatText(SUBDOMAIN_TEXT, SUBDOMAIN_FORMAT, 'example.com'));
  }
  return errors;
}

/** Nearly all: without a prefix, or with one of at most three short labels. Others need several times as long. */
const usualQualified =
  /^(?:[a-z0-9][-a-z0-9]{0,62}(?<!-)(?:\.[a-z0-9][-a-z0-9]{0,62}(?<!-)){0,2}\/)?[A-Za-z0-9][-A-Za-z0-9_.]{0,62}(?<![-_.])$/;

/** `[prefix/]name`: keys of labels, annotations and taints, finalizers, condition types. */
export function qualifiedNameErrors(value: string): string[] {
  if (usualQualified.test(value)) return [];
  const errors: string[] = [];
  const parts = value.split('/');
  const text = (): string => formatText(QUALIFIED_TEXT, QUALIFIED_FORMAT, 'MyName', 'my.name', '123-abc');
  if (parts.length > 2) {
    return [`a qualified name ${text()} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`];
  }
  const name = parts.at(-1) ?? '';
  if (parts.length === 2) {
    const prefix = parts[0] ?? '';
    if (prefix === '') errors.push('prefix part must be non-empty');
    else errors.push(...subdomainErrors(prefix).map((error) => `prefix part ${error}`));
  }
  if (name === '') errors.push('name part must be non-empty');
  else if (byteLength(name) > QUALIFIED_NAME_MAX) errors.push(`name part ${tooLongText(QUALIFIED_NAME_MAX)}`);
  if (!qualifiedPart.test(name)) errors.push(`name part ${text()}`);
  return errors;
}

/** Values of labels and taints. */
export function labelValueErrors(value: string): string[] {
  const errors: string[] = [];
  if (byteLength(value) > LABEL_VALUE_MAX) errors.push(tooLongText(LABEL_VALUE_MAX));
  if (value !== '' && !qualifiedPart.test(value)) {
    errors.push(formatText(LABEL_VALUE_TEXT, LABEL_VALUE_FORMAT, 'MyValue', 'my_value', '12345'));
  }
  return errors;
}

/** Names of environment variables, relaxed as in a pod's env. */
export function envVarErrors(value: string): string[] {
  const errors: string[] = [];
  if (!envVar.test(value)) {
    errors.push(
      formatText(
        "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit",
        ENV_VAR_FORMAT,
        'my.env-name',
        'MY_ENV.NAME',
        'MyEnvName1',
      ),
    );
  }
  if (value === '.') errors.push("must not be '.'");
  else if (value === '..') errors.push("must not be '..'");
  else if (value.startsWith('..')) errors.push("must not start with '..'");
  return errors;
}

/** Names of container ports, and of ports in probes: IANA service names. */
export function portNameErrors(value: string): string[] {
  const errors: string[] = [];
  if (byteLength(value) > PORT_NAME_MAX) errors.push(tooLongText(PORT_NAME_MAX));
  if (!/^[-a-z0-9]+$/.test(value))
    errors.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)');
  if (!/[a-z]/.test(value)) errors.push('must contain at least one letter (a-z)');
  if (value.includes('--')) errors.push('must not contain consecutive hyphens');
  if (value.startsWith('-') || value.endsWith('-')) errors.push('must not begin or end with a hyphen');
  return errors;
}

const PATH_FORMAT = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+";
const path = /^[-A-Za-z0-9/._~%!$&'()*+,;=:]+$/;

/** `domain/path`, such as the name of a controller. Not empty. */
export function domainPathErrors(value: string): string[] {
  const slash = value.indexOf('/');
  const rest = value.slice(slash + 1);
  if (slash < 1 || rest === '') return ['must be a domain-prefixed path (such as "acme.io/foo")'];
  const errors = subdomainErrors(value.slice(0, slash));
  return path.test(rest) ? errors : [...errors, formatText('Invalid path', PATH_FORMAT)];
}

/** Names of HTTP headers. */
export const httpHeaderErrors = (value: string): string[] =>
  /^[-A-Za-z0-9]+$/.test(value)
    ? []
    : [
        formatText(
          "a valid HTTP header must consist of alphanumeric characters or '-'",
          '[-A-Za-z0-9]+',
          'X-Header-Name',
        ),
      ];

const CONFIG_KEY_MAX = 253;

/** Keys of ConfigMaps and Secrets. */
export function configKeyErrors(key: string): string[] {
  const errors: string[] = [];
  if (key.length > CONFIG_KEY_MAX) errors.push(tooLongText(CONFIG_KEY_MAX));
  if (!/^[-._a-zA-Z0-9]+$/.test(key)) {
    errors.push(
      formatText(
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
        '[-._a-zA-Z0-9]+',
        'key.name',
        'KEY_NAME',
        'key-name',
      ),
    );
  }
  if (key === '.') errors.push("must not be '.'");
  else if (key === '..') errors.push("must not be '..'");
  else if (key.startsWith('..')) errors.push("must not start with '..'");
  return errors;
}

/** A rule for names. `prefix`: the text is a generateName, to which a suffix will be added. */
export type NameRule = (name: string, prefix: boolean) => string[];

// A generateName may end with a dash, because a suffix follows. A name may not.
const withoutTrailingDash = (name: string): string => (name.endsWith('-') ? `${name.slice(0, -1)}a` : name);

export const subdomainName: NameRule = (name, prefix) => subdomainErrors(prefix ? withoutTrailingDash(name) : name);
/** Name of a Node or NodeIdentity: a subdomainName, but not the name of the probe's Lease. */
export const nodeName: NameRule = (name, prefix) =>
  !prefix && name === PROBE_LEASE ? ["is the name of the cluster's own probe"] : subdomainName(name, prefix);
export const nodeNameErrors = (name: string): string[] => nodeName(name, false);
export const labelName: NameRule = (name, prefix) => labelErrors(prefix ? withoutTrailingDash(name) : name);

/** Leases and events: whatever can stand as one segment of a path. */
export const pathSegmentName: NameRule = (name, prefix) => {
  if (!prefix && (name === '.' || name === '..')) return [`may not be '${name}'`];
  return ['/', '%'].filter((part) => name.includes(part)).map((part) => `may not contain '${part}'`);
};

/** The same of a name that nothing is added to. */
export const pathSegmentErrors = (name: string): string[] => pathSegmentName(name, false);

/** Characters of the suffix, and of the prefix that is kept: together at most 63. */
const GENERATED_SUFFIX_LENGTH = 5;
const GENERATE_NAME_KEPT = 63 - GENERATED_SUFFIX_LENGTH;
/** Without vowels and look-alike characters, so no suffix forms a word. */
const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';

/** A name from a generateName: prefix and five characters. `fraction` yields numbers in [0, 1). */
export function generateName(prefix: string, fraction: () => number): string {
  let suffix = '';
  for (let index = 0; index < GENERATED_SUFFIX_LENGTH; index += 1) {
    suffix += SUFFIX_ALPHABET[Math.floor(fraction() * SUFFIX_ALPHABET.length)] ?? 'b';
  }
  return prefix.slice(0, GENERATE_NAME_KEPT) + suffix;
}
