/** Signed documents in the form of EC2, created with a key of our own, and the certificate that verifies them. */
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const head = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...head]), content]);
}
const sequence = (...parts: readonly Uint8Array[]): Buffer => der(0x30, ...parts);
const set = (...parts: readonly Uint8Array[]): Buffer => der(0x31, ...parts);
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'));
const integer = (value: number): Buffer => der(0x02, Buffer.from([value]));
const octets = (bytes: Uint8Array): Buffer => der(0x04, bytes);
const NULL = der(0x05);

const SIGNED_DATA = oid('2a864886f70d010702');
const DATA = oid('2a864886f70d010701');
const SHA_256 = sequence(oid('608648016503040201'), NULL);
const RSA = sequence(oid('2a864886f70d010101'), NULL);
const SHA_256_WITH_RSA = sequence(oid('2a864886f70d01010b'), NULL);
const NAME = sequence(set(sequence(oid('550403'), der(0x0c, Buffer.from('test')))));
const ISSUER_AND_SERIAL = sequence(NAME, integer(1));

export interface DocumentSigner {
  /** PEM. */
  readonly certificate: string;
  /** SubjectPublicKeyInfo in DER, base64. */
  readonly publicKey: string;
  readonly privateKey: KeyObject;
}

export function documentSigner(modulusLength = 2_048): DocumentSigner {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength });
  const time = (text: string): Buffer => der(0x18, Buffer.from(text));
  const tbs = sequence(
    der(0xa0, integer(2)),
    integer(1),
    SHA_256_WITH_RSA,
    NAME,
    sequence(time('20200101000000Z'), time('20990101000000Z')),
    NAME,
    publicKey.export({ type: 'spki', format: 'der' }),
  );
  const signature = der(0x03, Buffer.from([0]), sign('sha256', tbs, privateKey));
  const certificate = sequence(tbs, SHA_256_WITH_RSA, signature).toString('base64');
  const lines = certificate.match(/.{1,64}/g) ?? [];
  return {
    privateKey,
    publicKey: publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
    certificate: ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n'),
  };
}

/** What a document may have in place of what EC2 sends. DER. */
export interface OtherParts {
  readonly infoType?: Buffer;
  readonly contentType?: Buffer;
  readonly digestAlgorithm?: Buffer;
  readonly signatureAlgorithm?: Buffer;
  /** The signed attributes; without this the content type and the digest. None: the content itself is signed. */
  readonly attributes?: (type: Buffer, digest: Buffer) => readonly Buffer[];
  readonly signers?: (signer: Buffer) => readonly Buffer[];
}

/** Parts of documents that are not accepted, and one that is as good as that of EC2. */
export const OTHER = {
  ENCRYPTED_DATA: oid('2a864886f70d010706'),
  SHA_384: sequence(oid('608648016503040202'), NULL),
  SHA_256_WITH_RSA,
  ECDSA: sequence(oid('2a8648ce3d040302')),
  /** The attribute of the digest with these values. */
  digestAs: (...values: readonly Buffer[]): Buffer => sequence(oid('2a864886f70d010904'), set(...values)),
  digestOf: (content: string): Buffer => OTHER.digestAs(octets(createHash('sha256').update(content).digest())),
  shortDigest: (): Buffer => octets(Buffer.from('short')),
  NULL,
};

/** PKCS #7 of a content. `told` stands in it instead of what is signed. */
export function pkcs7Of(
  content: string,
  { privateKey }: DocumentSigner,
  told = content,
  {
    infoType = SIGNED_DATA,
    contentType = DATA,
    digestAlgorithm = SHA_256,
    signatureAlgorithm = RSA,
    attributes: attributesOf = (type, digest) => [type, digest],
    signers = (signer) => [signer],
  }: OtherParts = {},
): Buffer {
  const attributes = attributesOf(sequence(oid('2a864886f70d010903'), set(DATA)), OTHER.digestOf(content));
  const signed = attributes.length === 0 ? Buffer.from(content) : set(...attributes);
  const signature = octets(sign('sha256', signed, privateKey));
  const tagged = attributes.length === 0 ? [] : [der(0xa0, ...attributes)];
  const signer = sequence(integer(1), ISSUER_AND_SERIAL, digestAlgorithm, ...tagged, signatureAlgorithm, signature);
  const wrapped = sequence(contentType, der(0xa0, octets(Buffer.from(told))));
  const data = sequence(integer(1), set(SHA_256), wrapped, set(...signers(signer)));
  return sequence(infoType, der(0xa0, data));
}
