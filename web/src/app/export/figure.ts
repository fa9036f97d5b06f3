// A drawing of the page as a file: SVG that needs no style sheet, or PNG.

import { fileName, save } from "./save";

const SVG = "http://www.w3.org/2000/svg";
// Properties that style sheets give to parts of drawings.
const PROPERTIES = ["fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "font-variant-numeric", "visibility", "display"];
// Pixels of a PNG for each of the page.
const SCALE = 3;

export function saveSvg(host: HTMLElement, label: string): void {
  const text = new XMLSerializer().serializeToString(standalone(host));
  save(`${fileName(label)}.svg`, new Blob([`<?xml version="1.0" encoding="UTF-8"?>\n${text}\n`], { type: "image/svg+xml" }));
}

export async function savePng(host: HTMLElement, label: string): Promise<void> {
  const svg = standalone(host);
  const text = new XMLSerializer().serializeToString(svg);
  const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = Math.ceil(SCALE * Number(svg.getAttribute("width")));
    canvas.height = Math.ceil(SCALE * Number(svg.getAttribute("height")));
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
    if (blob) save(`${fileName(label)}.png`, blob);
  } finally {
    URL.revokeObjectURL(url);
  }
}

// Returns all drawings inside an element as one, at their places, on the colour of the page.
function standalone(host: HTMLElement): SVGSVGElement {
  const frame = host.getBoundingClientRect();
  const outer = document.createElementNS(SVG, "svg");
  outer.setAttribute("xmlns", SVG);
  outer.setAttribute("width", String(Math.ceil(frame.width)));
  outer.setAttribute("height", String(Math.ceil(frame.height)));
  outer.setAttribute("viewBox", `0 0 ${Math.ceil(frame.width)} ${Math.ceil(frame.height)}`);
  const paper = document.createElementNS(SVG, "rect");
  paper.setAttribute("width", "100%");
  paper.setAttribute("height", "100%");
  paper.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  outer.append(definitions(), paper);
  for (const svg of host.querySelectorAll<SVGSVGElement>("svg")) if (!svg.parentElement?.closest("svg")) outer.append(placed(svg, frame));
  for (const canvas of host.querySelectorAll("canvas")) outer.append(picture(canvas, frame));
  return outer;
}

function placed(svg: SVGSVGElement, frame: DOMRect): SVGSVGElement {
  const box = svg.getBoundingClientRect();
  const copy = styled(svg) as SVGSVGElement;
  copy.setAttribute("x", String(box.left - frame.left));
  copy.setAttribute("y", String(box.top - frame.top));
  copy.setAttribute("width", String(box.width));
  copy.setAttribute("height", String(box.height));
  copy.setAttribute("overflow", "visible");
  return copy;
}

// A copy without classes, whose style is in its attributes.
function styled(element: Element): Element {
  const copy = element.cloneNode(true) as Element;
  const [from, to] = [[element, ...element.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
  to.forEach((part, i) => {
    const style = getComputedStyle(from[i]!);
    for (const property of PROPERTIES) {
      const value = style.getPropertyValue(property);
      if (value) part.setAttribute(property, value.replace(/url\("[^"]*#/, 'url("#').replaceAll('"', property === "font-family" ? "'" : ""));
    }
    part.removeAttribute("class");
    part.removeAttribute("style");
  });
  for (const part of [...copy.querySelectorAll("style")]) part.remove();
  return copy;
}

function definitions(): Element {
  const defs = document.createElementNS(SVG, "defs");
  const pattern = document.getElementById("hatch");
  if (pattern) defs.append(styled(pattern));
  return defs;
}

function picture(canvas: HTMLCanvasElement, frame: DOMRect): Element {
  const box = canvas.getBoundingClientRect();
  const image = document.createElementNS(SVG, "image");
  const place = { x: box.left - frame.left, y: box.top - frame.top, width: box.width, height: box.height, href: canvas.toDataURL("image/png") };
  for (const [name, value] of Object.entries(place)) image.setAttribute(name, String(value));
  image.setAttribute("style", "image-rendering: pixelated");
  return image;
}
