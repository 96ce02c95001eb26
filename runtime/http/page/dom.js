// dom.js: elements out of data.  Whatever comes from a store becomes a text node or an attribute, never markup.

const SVG = "http://www.w3.org/2000/svg";

function make(node, attributes, children) {
	for (const [name, value] of Object.entries(attributes || {})) {
		if (name.startsWith("on"))
			node[name] = value;
		else if (value === true)
			node.setAttribute(name, "");
		else if (value !== false && value !== null && value !== undefined)
			node.setAttribute(name, value);
	}
	// What was given as a handler is taken over when the node is patched.
	node.handlers = Object.keys(attributes || {}).filter((name) => name.startsWith("on"));
	node.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
	return node;
}

export const h = (tag, attributes, ...children) => make(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => make(document.createElementNS(SVG, tag), attributes, children);

function patchAttributes(from, to) {
	for (const { name } of [...from.attributes])
		if (!to.hasAttribute(name) && !(name === "open" && from.tagName === "DETAILS"))
			from.removeAttribute(name);
	for (const { name, value } of [...to.attributes])
		if (from.getAttribute(name) !== value)
			from.setAttribute(name, value);
	for (const name of from.handlers || [])
		from[name] = null;
	for (const name of to.handlers || [])
		from[name] = to[name];
	from.handlers = to.handlers;
	// What a person types stays.
	if (from.tagName === "SELECT" || from.tagName === "INPUT" || from.tagName === "TEXTAREA")
		if (from !== document.activeElement && from.value !== to.value && from.dataset.typed === undefined)
			from.value = to.value;
}

// Makes the children of `from` those of `to`, and keeps the nodes that are alike: focus, scrolling and what is open stay.
export function patch(from, to) {
	const wanted = [...to.childNodes];
	for (let i = 0; i < wanted.length; i++) {
		const old = from.childNodes[i];
		const node = wanted[i];
		if (!old)
			from.append(node);
		else if (old.nodeType !== node.nodeType || old.nodeName !== node.nodeName ||
			(old.nodeType === 1 && old.getAttribute("data-key") !== node.getAttribute("data-key")))
			from.replaceChild(node, old);
		else if (old.nodeType === 3) {
			if (old.data !== node.data)
				old.data = node.data;
		} else {
			patchAttributes(old, node);
			patch(old, node);
		}
	}
	while (from.childNodes.length > wanted.length)
		from.lastChild.remove();
}

export function show(id, ...children) {
	const to = document.createElement("div");
	to.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
	patch(document.getElementById(id), to);
}

// Tells a person, and a screen reader, what happened.
export function say(text) {
	document.getElementById("said").textContent = text;
}
