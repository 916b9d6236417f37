/** Certificate requests as kubelets and people make them. */
import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import {
  type Extension,
  type JsonGeneralNames,
  type JsonName,
  Name,
  PemConverter,
  Pkcs10CertificateRequestGenerator,
  SubjectAlternativeNameExtension,
} from '@peculiar/x509';

export const P256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

export interface MadeRequest {
  /** `spec.request`. */
  readonly request: string;
  readonly privateKeyPem: string;
  readonly keys: webcrypto.CryptoKeyPair;
}

export interface RequestToMake {
  readonly commonName?: string;
  readonly organizations?: readonly string[];
  /** In place of both. */
  readonly subject?: JsonName;
  readonly alternativeNames?: JsonGeneralNames;
  readonly extensions?: readonly Extension[];
  readonly algorithm?: Record<string, unknown> & { readonly name: string };
  /** Keys of an earlier request. Absent: new ones. */
  readonly keys?: webcrypto.CryptoKeyPair;
}

export async function makeRequest(wanted: RequestToMake): Promise<MadeRequest> {
  const algorithm = wanted.algorithm ?? P256;
  const keys =
    wanted.keys ??
    ((await webcrypto.subtle.generateKey(algorithm as never, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair);
  const { commonName, organizations = [], alternativeNames } = wanted;
  const made = await Pkcs10CertificateRequestGenerator.create({
    // A plain string would be read: with quotes and escapes.
    name:
      wanted.subject ??
      new Name([
        ...organizations.map((O) => ({ O: [{ utf8String: O }] })),
        ...(commonName === undefined ? [] : [{ CN: [{ utf8String: commonName }] }]),
      ]),
    keys,
    signingAlgorithm: algorithm as never,
    extensions: [
      ...(wanted.extensions ?? []),
      ...(alternativeNames === undefined ? [] : [new SubjectAlternativeNameExtension(alternativeNames)]),
    ],
  });
  const pkcs8 = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  return {
    request: Buffer.from(`${made.toString('pem')}\n`).toString('base64'),
    privateKeyPem: `${PemConverter.encode(pkcs8, 'PRIVATE KEY')}\n`,
    keys,
  };
}
