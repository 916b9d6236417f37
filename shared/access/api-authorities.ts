/**
 * Certificates with which clients verify the endpoint of the API.
 *
 * On AWS the endpoint has a certificate of Amazon Trust Services, also with a custom domain and a public certificate of
 * ACM. Amazon recommends to trust all five roots (AWS Certificate Manager User Guide, "Prepare for certificates").
 * Node's default authorities have them. Where they are replaced, as in local mode, the replacement signed the endpoint.
 */
import { X509Certificate } from 'node:crypto';
import { getCACertificates } from 'node:tls';

const AMAZON_ROOTS = new Set([
  'CN=Amazon Root CA 1',
  'CN=Amazon Root CA 2',
  'CN=Amazon Root CA 3',
  'CN=Amazon Root CA 4',
  'CN=Starfield Services Root Certificate Authority - G2',
]);
/** More certificates than these are a general list, which says nothing about the endpoint. */
const REPLACEMENTS_MAX = 10;

let found: string | undefined;

/** PEM, in a fixed order. Empty: clients use the authorities of their system. */
export function apiAuthorities(): string {
  found ??= bundleOf(getCACertificates('default'));
  return found;
}

/** @param authorities PEM, one certificate each */
export function bundleOf(authorities: readonly string[]): string {
  const named = authorities.map((pem) => ({ pem: pem.trim(), subject: new X509Certificate(pem).subject }));
  const amazon = named.filter(({ subject }) => subject.split('\n').some((part) => AMAZON_ROOTS.has(part)));
  const chosen = amazon.length > 0 ? amazon : named.length > REPLACEMENTS_MAX ? [] : named;
  const ordered = chosen.toSorted((one, other) => (one.subject < other.subject ? -1 : 1));
  return ordered.map(({ pem }) => `${pem}\n`).join('');
}
