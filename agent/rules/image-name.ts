/** Names of images. Source: github.com/distribution/reference, reference.go (grammar of a reference). */

const PATH_COMPONENT = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*';
const HOST_COMPONENT = '(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])';
const HOST = `(?:${HOST_COMPONENT}(?:\\.${HOST_COMPONENT})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?`;
const DIGEST = '[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}';
const REFERENCE = new RegExp(
  `^(?:${HOST}/)?${PATH_COMPONENT}(?:/${PATH_COMPONENT})*(?::\\w[\\w.-]{0,127})?(?:@${DIGEST})?$`,
);
/** A reference is a name of up to 255 characters, a tag and a digest. */
const CHARACTERS_MAX = 1_024;

/**
 * Why a text is no reference to an image of a registry; undefined if it is one. podman would read other texts as
 * options, or as paths of archives on the machine (`docker-archive:/path`).
 *
 * Source of the message: upstream pkg/kubelet/images/image_manager.go, pkg/util/parsers/parsers.go.
 */
export function imageNameFault(image: string): string | undefined {
  if (image.length <= CHARACTERS_MAX && REFERENCE.test(image)) return undefined;
  const name = JSON.stringify(image);
  return `Failed to apply default image tag ${name}: couldn't parse image name ${name}: invalid reference format`;
}
