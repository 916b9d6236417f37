/** How a body in protobuf is known, without the code that decodes it. */

/** Media type of the bodies that typed Go clients send: kubectl from 1.32, Helm 4, kubelets, schedulers. */
export const PROTOBUF_MEDIA_TYPE = 'application/vnd.kubernetes.protobuf';

/** The first bytes of every such body: `k8s` and a zero byte. */
export const MAGIC = [0x6b, 0x38, 0x73, 0x00] as const;

/** Whether a body has the protobuf envelope of Kubernetes. The content type is not considered. */
export function isProtobuf(body: Uint8Array): boolean {
  return body.length >= MAGIC.length && MAGIC.every((byte, index) => body[index] === byte);
}
