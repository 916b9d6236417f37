/**
 * Verifies content that one known key signed, in the format of EC2: PKCS #7 SignedData (RFC 5652) that includes the
 * content, one signer, RSA with SHA-256. pkijs reads the structure (BER or DER), Node verifies the signature. Included
 * certificates are ignored, because only the configured key is trusted.
 */
import { createHash, type KeyObject, timingSafeEqual, verify } from 'node:crypto';
import { type BaseBlock, fromBER, OctetString } from 'asn1js';
import { type Attribute, ContentInfo, SignedData, type SignerInfo } from 'pkijs';

export type SignedContent =
  | { readonly kind: 'signed'; readonly content: Buffer }
  | { readonly kind: 'refused'; readonly reason: string };

const SIGNED_DATA = '1.2.840.113549.1.7.2';
const DATA = '1.2.840.113549.1.7.1';
const SHA_256 = '2.16.840.1.101.3.4.2.1';
const RSA_ENCRYPTION = '1.2.840.113549.1.1.1';
const SHA_256_WITH_RSA = '1.2.840.113549.1.1.11';
const CONTENT_TYPE = '1.2.840.113549.1.9.3';
const MESSAGE_DIGEST = '1.2.840.113549.1.9.4';
/** Tag of a SET. The attributes are signed with this tag, not with their encoded one (RFC 5652 §5.4). */
const SET_TAG = 0x31;

const refused = (reason: string): SignedContent => ({ kind: 'refused', reason });
const MALFORMED = refused('malformed PKCS #7');

/** Never throws. @param key the RSA key of the trusted certificate */
export function signedContent(pkcs7: Buffer, key: KeyObject): SignedContent {
  let signedData: SignedData | undefined;
  try {
    signedData = parse(pkcs7);
  } catch {
    // The library throws for every malformed input; the client receives the same reason.
    return MALFORMED;
  }
  return signedData === undefined ? refused('no signed data') : verdictOf(signedData, key);
}

/** undefined: another kind of PKCS #7. @throws Error for a malformed one */
function parse(pkcs7: Buffer): SignedData | undefined {
  const { result, offset } = fromBER(bytesOf(pkcs7));
  if (offset !== pkcs7.length || result.error !== '') throw new Error(result.error);
  const info = new ContentInfo({ schema: result });
  return info.contentType === SIGNED_DATA ? new SignedData({ schema: info.content }) : undefined;
}

function verdictOf(signedData: SignedData, key: KeyObject): SignedContent {
  const { eContentType, eContent } = signedData.encapContentInfo;
  if (eContentType !== DATA) return refused('content is not plain data');
  if (!(eContent instanceof OctetString)) return MALFORMED;
  const content = Buffer.from(eContent.getValue());
  const [signer, ...others] = signedData.signerInfos;
  if (signer === undefined || others.length > 0) return refused('number of signers is not one');
  if (signer.digestAlgorithm.algorithmId !== SHA_256) return refused('digest is not SHA-256');
  const { algorithmId } = signer.signatureAlgorithm;
  if (algorithmId !== RSA_ENCRYPTION && algorithmId !== SHA_256_WITH_RSA) return refused('signature is not RSA');
  const signed = signer.signedAttrs === undefined ? content : signedAttributes(signer, content);
  if (signed === undefined) return refused('signed attributes do not match the content');
  const signature = Buffer.from(signer.signature.getValue());
  return verify('sha256', signed, key, signature) ? { kind: 'signed', content } : refused('wrong signature');
}

/** The octets that are signed if there are attributes: the attributes. One of them is the digest of the content. */
function signedAttributes({ signedAttrs }: SignerInfo, content: Buffer): Buffer | undefined {
  const { attributes, encodedValue } = signedAttrs!;
  const digest = onlyValue(attributes, MESSAGE_DIGEST);
  const type = onlyValue(attributes, CONTENT_TYPE);
  if (!(digest instanceof OctetString) || type?.valueBlock.toString() !== DATA) return undefined;
  const stated = Buffer.from(digest.getValue());
  const computed = createHash('sha256').update(content).digest();
  if (stated.length !== computed.length || !timingSafeEqual(stated, computed)) return undefined;
  const asSet = Buffer.from(encodedValue);
  asSet[0] = SET_TAG;
  return asSet;
}

/** The only value of the only attribute of a type; undefined if there are none or several. */
function onlyValue(attributes: readonly Attribute[], type: string): BaseBlock | undefined {
  const found = attributes.filter((attribute) => attribute.type === type);
  const values: readonly BaseBlock[] = found[0]?.values ?? [];
  return found.length === 1 && values.length === 1 ? values[0] : undefined;
}

const bytesOf = ({ buffer, byteOffset, length }: Buffer): ArrayBuffer =>
  (buffer as ArrayBuffer).slice(byteOffset, byteOffset + length);
